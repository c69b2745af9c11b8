// linear_cross_entropy   loss and gradients of softmax cross entropy over logits = x w^T + b, with
//                        x [T, H] and w [V, H], without ever holding all logits
//
// Split by rows: for each chunk of c rows
//   logits [c, V] = x w^T + b    GEMM, rounded to the element type
//   logits -> loss, dlogits      one sweep of loss/rows.cu, in place
//   dx [c, H] = dlogits w        GEMM
//   dw [V, H] += dlogits^T x     GEMM; several chunks are summed in fp32 and rounded once
//   dbias [V] += sum_c dlogits   another sweep
// Split by vocabulary: two passes over chunks of c columns. The first computes logits [T, c] and
// joins their statistics (loss/columns.cu). The second goes from the last chunk to the first:
// dlogits, dx [T, H] += dlogits w in fp32, dw [c, H] = dlogits^T x. Until dw is written, its memory
// holds logits; logits that fit neither there nor in the scratch are computed twice.
//
// The device counts the rows that are not ignored: nothing waits for the host. At best the three
// products take all the time: 6*T*H*V flop.
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <climits>
#include <utility>

#include "kernels/device/scratch_parts.h"
#include "kernels/linear_cross_entropy/valid_rows.h"
#include "kernels/linear_head/bias_gradient.h"
#include "kernels/linear_head/chunks.h"
#include "kernels/linear_head/products.h"
#include "kernels/linear_head/round_rows.h"
#include "kernels/loss/columns.h"
#include "kernels/signature/checks.h"

namespace tigon::linear_cross_entropy {
namespace {

using linear_head::add_bias_gradient;
using linear_head::bias_groups;
using linear_head::ChunkOf;
using linear_head::first_segment;
using linear_head::for_chunks;
using linear_head::for_columns;
using linear_head::for_rounds;
using linear_head::kPadding;
using linear_head::Round;
using linear_head::round_rows;
using linear_head::round_up;

// The plan of the products, and the scratch of the loss.
template <class Elem>
struct LossPlan : linear_head::Plan<Elem> {
  LossTotals* totals = nullptr;  // [1], where needs_totals()
  // [T] each, where they are reduced.
  float *loss = nullptr, *z_part = nullptr, *accuracy = nullptr, *entropy = nullptr;
  LossState* state = nullptr;  // [T], where the vocabulary is cut
};

template <class Args>
using LossPlanOf = LossPlan<typename Args::Elem>;

// What the products of all chunks need at most.
struct ProductScratch {
  size_t gemm_bytes = 0;
  int64_t bias_sums = 0;
};
template <class Args>
ProductScratch product_scratch(const Args& a, const LossPlanOf<Args>& p) {
  ProductScratch need;
  const auto widen = [&](const Gemm& g) {
    need.gemm_bytes = std::max(need.gemm_bytes, gemm_workspace(g));
    return Status{};
  };
  for_chunks(a, p, [&](ChunkOf<Args> c) {
    widen(logits_gemm(a, c));
    const int64_t groups = bias_groups<typename Args::Elem>(c.rows, c.columns);
    need.bias_sums = std::max(need.bias_sums, groups * c.columns);
    return for_gradient_gemms(a, p, c, widen);
  });
  return need;
}

// The rows' losses and results that are reduced.
template <class Args>
void take_losses(const Args& a, ScratchParts* parts, LossPlanOf<Args>* p) {
  const int64_t rows = a.x.shape[0];
  if (needs_totals(a, static_cast<bool>(a.class_weight))) p->totals = parts->take<LossTotals>(1);
  if (a.reduction == Reduction::kNone) return;
  const auto take = [&](bool wanted) { return wanted ? parts->take<float>(rows) : nullptr; };
  p->loss = take(true);
  p->z_part = take(static_cast<bool>(a.z_part));
  p->accuracy = take(static_cast<bool>(a.accuracy));
  p->entropy = take(static_cast<bool>(a.entropy));
}

// The gradients that are summed over chunks and then rounded.
template <class Args>
void take_sums(const Args& a, bool by_columns, ScratchParts* parts, LossPlanOf<Args>* p) {
  if constexpr (WritesGradients<Args>) {
    const int64_t rows = a.x.shape[0];
    const bool cut = rows > 0 && p->chunk < (by_columns ? a.w.shape[0] : rows);
    const bool sums = cut && !std::is_same_v<typename Args::Elem, float>;
    p->sums_dw = sums && a.dw && !by_columns;
    p->sums_dx = sums && a.dx && by_columns;
    if (p->sums_dw) p->dw_sum = parts->take<float>(a.w.shape[0] * a.x.shape[1]);
    if (p->sums_dx) p->dx_sum = parts->take<float>(rows * a.x.shape[1]);
  }
}

// data: the scratch; nullptr where only its size is asked for.
template <class Args>
LossPlanOf<Args> plan(const Args& a, void* data) {
  using Elem = typename Args::Elem;
  const int64_t rows = a.x.shape[0];
  LossPlanOf<Args> p;
  const bool by_columns = a.split == Split::kVocabulary;
  p.room = logits_room(a);
  p.chunk = by_columns ? p.room.scratch_columns : chunk_rows(a);
  p.chunks = ceil_div(rows, p.chunk);
  p.segments = first_segment<Elem>(spare_memory(a).data);
  ScratchParts parts(data);
  take_losses(a, &parts, &p);
  if (by_columns) p.state = parts.take<LossState>(rows);
  if (rows > 0)
    p.logits = parts.take<Elem>(by_columns ? rows * round_up(p.chunk, kPadding)
                                           : p.chunk * round_up(a.w.shape[0], kPadding));
  take_sums(a, by_columns, &parts, &p);
  const ProductScratch need = product_scratch(a, p);
  if constexpr (WritesGradients<Args>)
    if (a.dbias) p.bias_sums = parts.take<float>(need.bias_sums);
  p.gemm.bytes = need.gemm_bytes;
  p.gemm.data = parts.template take<char>(static_cast<int64_t>(need.gemm_bytes));
  p.bytes = parts.bytes();
  return p;
}

template <class T>
bool is_matrix(const View<T, 2>& v, int64_t rows, int64_t columns) {
  return has_shape(v, rows, columns) && (rows <= 1 || v.stride[0] >= columns);
}

// What only forward_backward has.
template <class Args>
Status check_gradients(const Args& a, int64_t losses) {
  const int64_t rows = a.x.shape[0], hidden = a.x.shape[1], columns = a.w.shape[0];
  if (a.dloss && !has_shape(a.dloss, losses))
    return invalid("linear_cross_entropy: dloss must be [T] with reduction none, else [1]");
  if (a.dbias && !has_shape(a.dbias, columns))
    return invalid("linear_cross_entropy: dbias must be [V]");
  if (a.dx && !is_matrix(a.dx, rows, hidden))
    return invalid("linear_cross_entropy: dx must be shaped like x");
  if ((a.dw && !is_matrix(a.dw, columns, hidden)) ||
      (a.dw_fp32 && !is_matrix(a.dw_fp32, columns, hidden)) ||
      (a.dw_accum && !is_matrix(a.dw_accum, columns, hidden)))
    return invalid("linear_cross_entropy: dw, dw_fp32 and dw_accum must be shaped like w");
  if (static_cast<bool>(a.dw) + static_cast<bool>(a.dw_fp32) + static_cast<bool>(a.dw_accum) > 1)
    return invalid("linear_cross_entropy: at most one of dw, dw_fp32 and dw_accum");
  return {};
}

// Loss, results and the vectors over classes.
template <class Args>
Status check_loss(const Args& a, int64_t losses) {
  const int64_t columns = a.w.shape[0];
  if (!has_shape(a.loss, losses) || is_missing(a.loss))
    return invalid("linear_cross_entropy: loss must be [T] with reduction none, else [1]");
  for (const auto* result : {&a.z_part, &a.accuracy, &a.entropy})
    if (*result && !has_shape(*result, losses))
      return invalid(
          "linear_cross_entropy: z_part, accuracy and entropy must be [T] with reduction none, "
          "else [1]");
  if (a.class_weight && !has_shape(a.class_weight, columns))
    return invalid("linear_cross_entropy: class_weight must be [V]");
  if (a.bias && !has_shape(a.bias, columns))
    return invalid("linear_cross_entropy: bias must be [V]");
  if (a.normaliser && !has_shape(a.normaliser, 1))
    return invalid("linear_cross_entropy: normaliser must be [1]");
  if (!(a.label_smoothing >= 0.0f && a.label_smoothing <= 1.0f))
    return invalid("linear_cross_entropy: label_smoothing must be in [0, 1]");
  return {};
}

template <class Args>
Status check(const Args& a) {
  const int64_t rows = a.x.shape[0], hidden = a.x.shape[1], columns = a.w.shape[0];
  const int64_t losses = a.reduction == Reduction::kNone ? rows : 1;
  if (hidden > INT_MAX) return unsupported("linear_cross_entropy: H must be below 2^31");
  if (rows < 0 || hidden < 1 || columns < 1)
    return invalid("linear_cross_entropy: x must be [T >= 0, H >= 1] and w [V >= 1, H]");
  if (!is_matrix(a.x, rows, hidden) || !is_matrix(a.w, columns, hidden))
    return invalid("linear_cross_entropy: rows of x and w must be contiguous, of the same length");
  if (!has_shape(a.target, rows) || !has_shape(a.lse, rows))
    return invalid("linear_cross_entropy: target and lse must be [T]");
  if (is_missing(a.x) || is_missing(a.w) || is_missing(a.target) || is_missing(a.lse))
    return invalid("linear_cross_entropy: x, w, target and lse must not be null");
  if (const Status s = check_loss(a, losses); !s.ok()) return s;
  if constexpr (WritesGradients<Args>) return check_gradients(a, losses);
  return {};
}

template <class Args>
bool wants_gradients(const Args& a) {
  if constexpr (WritesGradients<Args>) return a.dx || has_dw(a) || a.dbias;
  return false;
}

// What the sweep over a chunk works on.
template <class Args>
LossRows<typename Args::Elem> rows_of(const Args& a, const LossPlanOf<Args>& p, ChunkOf<Args> c) {
  const bool none = a.reduction == Reduction::kNone;
  const auto at = [&](float* reduced, const View<float, 1>& out) {
    float* const first = none ? out.data : reduced;
    return first != nullptr ? first + c.row : nullptr;
  };
  LossRows<typename Args::Elem> rows{
      .pass = LossPass::kForward,
      .options = a,
      .rows = c.rows,
      .classes = a.w.shape[0],
      .first_column = c.column,
      .columns = c.columns,
      .logits = c.logits,
      .stride = c.stride,
      .target = a.target.data + c.row,
      .class_weight = a.class_weight.data,
      .totals = p.totals,
      .loss = at(p.loss, a.loss),
      .lse = a.lse.data + c.row,
      .z_part = at(p.z_part, a.z_part),
      .accuracy = at(p.accuracy, a.accuracy),
      .entropy = at(p.entropy, a.entropy),
  };
  if constexpr (WritesGradients<Args>) {
    if (wants_gradients(a)) rows.pass = LossPass::kForwardBackward;
    if (a.dloss) rows.dloss = a.dloss.data + (none ? c.row : 0);
  }
  return rows;
}

// What becomes of a chunk's dlogits.
template <class Args>
Status use_gradient(const Args& a, const LossPlanOf<Args>& p, ChunkOf<Args> c, Stream stream) {
  if constexpr (WritesGradients<Args>) {
    if (a.dbias) {
      const bool adds = c.row != 0;
      const Status s = add_bias_gradient(c.logits, c.rows, c.columns, c.stride, adds, p.bias_sums,
                                         a.dbias.data + c.column, stream);
      if (!s.ok()) return s;
    }
  }
  return for_gradient_gemms(a, p, c, [&](const Gemm& g) { return gemm(g, p.gemm, stream); });
}

template <class Args>
Status compute_logits(const Args& a, const LossPlanOf<Args>& p, ChunkOf<Args> c, Stream stream) {
  return gemm(logits_gemm(a, c), p.gemm, stream);
}

template <class Args>
Status run_rows(const Args& a, const LossPlanOf<Args>& p, Stream stream) {
  for (int64_t i = 0; i < p.chunks; ++i) {
    const auto c = rows_at(a, p, i);
    if (const Status s = compute_logits(a, p, c, stream); !s.ok()) return s;
    if (const Status s = loss_rows(rows_of(a, p, c), stream); !s.ok()) return s;
    if (const Status s = use_gradient(a, p, c, stream); !s.ok()) return s;
  }
  return {};
}

// Statistics of all columns, then the gradients of all from the right. The round on the right comes
// last the first time: its logits are still there the second time, those of others are computed
// again.
template <class Args>
Status run_columns(const Args& a, const LossPlanOf<Args>& p, Stream stream) {
  if (a.x.shape[0] == 0) return {};
  const Round last = round_before(a.w.shape[0], p.room);
  bool is_first = true;
  const auto add = [&](ChunkOf<Args> c) {
    if (const Status s = compute_logits(a, p, c, stream); !s.ok()) return s;
    return add_loss_columns(rows_of(a, p, c), p.state, std::exchange(is_first, false), stream);
  };
  const auto add_round = [&](const Round& round) { return for_columns(a, p, round, add); };
  if (const Status s = for_rounds(last.first, p.room, add_round); !s.ok()) return s;
  if (const Status s = add_round(last); !s.ok()) return s;
  if (const Status s = finish_loss(rows_of(a, p, no_logits(a)), p.state, stream); !s.ok()) return s;
  if (!wants_gradients(a)) return {};
  const auto compute = [&](ChunkOf<Args> c) { return compute_logits(a, p, c, stream); };
  const auto gradient = [&](ChunkOf<Args> c) {
    if (const Status s = loss_columns_gradient(rows_of(a, p, c), stream); !s.ok()) return s;
    return use_gradient(a, p, c, stream);
  };
  if (const Status s = for_columns(a, p, last, gradient); !s.ok()) return s;
  return for_rounds(last.first, p.room, [&](const Round& round) {
    if (const Status s = for_columns(a, p, round, compute); !s.ok()) return s;
    return for_columns(a, p, round, gradient);
  });
}

// What is left when all chunks are done: rounding the sums, or zeros where there was no row.
template <class Args>
Status write_gradients(const Args& a, const LossPlanOf<Args>& p, Stream stream) {
  if constexpr (WritesGradients<Args>) {
    const bool none = a.x.shape[0] == 0;
    if (p.sums_dx) {
      if (const Status s = round_rows(p.dx_sum, a.dx, stream); !s.ok()) return s;
    }
    if (a.dw && (p.sums_dw || none)) {
      if (const Status s = round_rows(p.dw_sum, a.dw, stream); !s.ok()) return s;
    }
    if (a.dbias && none) {
      const Status s =
          add_bias_gradient(p.logits, 0, a.w.shape[0], 0, false, p.bias_sums, a.dbias.data, stream);
      if (!s.ok()) return s;
    }
    if (a.dw_fp32 && none) return round_rows(nullptr, a.dw_fp32, stream);
  }
  return {};
}

template <class Args>
Status run_all(const Args& a, Stream stream) {
  const LossPlanOf<Args> p = plan(a, a.scratch.data);
  if (a.scratch.bytes < p.bytes || (p.bytes > 0 && a.scratch.data == nullptr))
    return invalid("linear_cross_entropy: scratch is smaller than workspace()");
  const int64_t rows = a.x.shape[0];
  if (p.totals != nullptr) {
    const Status s = count_rows(a.target.data, rows, a, a.class_weight.data, a.w.shape[0],
                                a.normaliser.data, p.totals, stream);
    if (!s.ok()) return s;
  }
  const Status chunks =
      a.split == Split::kVocabulary ? run_columns(a, p, stream) : run_rows(a, p, stream);
  if (!chunks.ok()) return chunks;
  if (const Status s = write_gradients(a, p, stream); !s.ok()) return s;
  if (a.reduction == Reduction::kNone) return {};
  return reduce_results(a, rows_of(a, p, no_logits(a)), stream);
}

template <class Args>
Status run(const Args& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  if (!gathers(a)) return run_all(a, stream);
  const Gathered<Args> g = gathered(a, a.scratch.data);
  if (a.scratch.data == nullptr || a.scratch.bytes < g.bytes)
    return invalid("linear_cross_entropy: scratch is smaller than workspace()");
  if (const Status s = gather_rows(a, g, stream); !s.ok()) return s;
  if (const Status s = run_all(g.call, stream); !s.ok()) return s;
  return spread_rows(a, g, stream);
}

template <class Args>
size_t scratch_bytes(const Args& a) {
  if (!gathers(a)) return plan(a, nullptr).bytes;
  const Gathered<Args> g = gathered(a, nullptr);
  return g.bytes + plan(g.call, nullptr).bytes;
}

template <class Args>
Status tune_all(const Args& given) {
  if (const Status s = check(given); !s.ok()) return s;
  const Args a = gathers(given) ? gathered(given, given.scratch.data).call : given;
  const LossPlanOf<Args> p = plan(a, a.scratch.data);
  return for_chunks(a, p, [&](ChunkOf<Args> c) {
    if (const Status s = gemm_tune(logits_gemm(a, c)); !s.ok()) return s;
    return for_gradient_gemms(a, p, c, gemm_tune);
  });
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  return run(a, stream);
}
template <class P>
Status forward_backward(const ForwardBackward<P>& a, Stream stream) {
  return run(a, stream);
}
template <class P>
size_t workspace(const Forward<P>& a) {
  return scratch_bytes(a);
}
template <class P>
size_t workspace(const ForwardBackward<P>& a) {
  return scratch_bytes(a);
}
template <class P>
Status tune(const Forward<P>& a) {
  return tune_all(a);
}
template <class P>
Status tune(const ForwardBackward<P>& a) {
  return tune_all(a);
}

template Status forward<F32>(const Forward<F32>&, Stream);
template Status forward<BF16>(const Forward<BF16>&, Stream);
template Status forward<F16>(const Forward<F16>&, Stream);
template Status forward_backward<F32>(const ForwardBackward<F32>&, Stream);
template Status forward_backward<BF16>(const ForwardBackward<BF16>&, Stream);
template Status forward_backward<F16>(const ForwardBackward<F16>&, Stream);
template size_t workspace<F32>(const Forward<F32>&);
template size_t workspace<BF16>(const Forward<BF16>&);
template size_t workspace<F16>(const Forward<F16>&);
template size_t workspace<F32>(const ForwardBackward<F32>&);
template size_t workspace<BF16>(const ForwardBackward<BF16>&);
template size_t workspace<F16>(const ForwardBackward<F16>&);
template Status tune<F32>(const Forward<F32>&);
template Status tune<BF16>(const Forward<BF16>&);
template Status tune<F16>(const Forward<F16>&);
template Status tune<F32>(const ForwardBackward<F32>&);
template Status tune<BF16>(const ForwardBackward<BF16>&);
template Status tune<F16>(const ForwardBackward<F16>&);

}  // namespace tigon::linear_cross_entropy
