// SPDX-License-Identifier: Apache-2.0
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

#include <utility>

#include "kernels/linear_cross_entropy/check_args.h"
#include "kernels/linear_cross_entropy/plan.h"
#include "kernels/linear_cross_entropy/valid_rows.h"
#include "kernels/linear_head/bias_gradient.h"
#include "kernels/linear_head/chunks.h"
#include "kernels/linear_head/products.h"
#include "kernels/linear_head/round_rows.h"
#include "kernels/loss/columns.h"

namespace tigon::linear_cross_entropy {
namespace {

using linear_head::add_bias_gradient;
using linear_head::for_columns;
using linear_head::for_rounds;
using linear_head::Round;
using linear_head::round_rows;

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

// dbias, dx and dw from a chunk's dlogits.
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

// First the statistics of all columns, then their gradients from the right to the left. The first
// pass takes the rightmost round last: its logits are still in memory when the second pass starts.
// Those of the other rounds are computed again.
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

// After all chunks: rounds the sums, or writes zeros where there was no row.
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
