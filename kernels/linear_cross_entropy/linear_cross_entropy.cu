// linear_cross_entropy: for each chunk of rows c of x [T, H], with w [V, H] the weight,
//   logits [c, V] = x w^T        GEMM, rounded to the element type
//   logits -> loss, dlogits      one sweep of kernels/device/loss_rows.cu, in place
//   dx [c, H] = dlogits w        GEMM
//   dw [V, H] += dlogits^T x     GEMM; in fp32 and rounded once when there are several chunks
// One chunk of logits is all that is ever held. Nothing waits for the host: the number of rows that
// are not ignored is counted on the device first.
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <algorithm>
#include <climits>
#include <type_traits>

#include "kernels/device/device.h"
#include "kernels/device/gemm.h"
#include "kernels/device/loss_rows.h"
#include "kernels/device/scratch_parts.h"
#include "kernels/signature/checks.h"

namespace tigon::linear_cross_entropy {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;  // of the rounding kernel: some rows each
// Elements between rows of logits are a multiple of this: 16 bytes of a 16-bit type, without which
// the GEMM and the row sweep cannot use wide accesses.
constexpr int64_t kPadding = 8;

template <class Args>
concept WritesGradients = requires(const Args& a) {
  a.dw.data;
};

int64_t round_up(int64_t n, int64_t multiple) { return ceil_div(n, multiple) * multiple; }

template <class Args>
int64_t logits_stride(const Args& a) {
  return round_up(a.w.shape[0], kPadding);
}

// Rows per chunk: as few chunks as the budget allows, of equal size, rounded up to whole tiles of
// the GEMM where the budget allows that.
template <class Args>
int64_t chunk_rows(const Args& a) {
  const int64_t rows = a.x.shape[0];
  const int64_t row_bytes = logits_stride(a) * static_cast<int64_t>(sizeof(typename Args::Elem));
  const int64_t most = std::max<int64_t>(1, a.logits_bytes / row_bytes);
  const int64_t chunks = std::max<int64_t>(1, ceil_div(rows, most));
  int64_t chunk = ceil_div(rows, chunks);
  for (const int64_t tile : {int64_t{256}, int64_t{128}}) {
    if (round_up(chunk, tile) > most) continue;
    chunk = round_up(chunk, tile);
    break;
  }
  return std::clamp<int64_t>(chunk, 1, std::max<int64_t>(1, rows));
}

// The scratch and how the rows are cut.
template <class Elem>
struct Plan {
  int64_t chunk = 0, chunks = 0, stride = 0;
  LossTotals* totals = nullptr;  // [1], where needs_totals()
  // [T] each, where they are reduced.
  float *loss = nullptr, *z_part = nullptr, *accuracy = nullptr, *entropy = nullptr;
  Elem* logits = nullptr;   // [chunk, stride]
  float* dw_sum = nullptr;  // [V, H], where dw is summed over chunks and is not fp32 itself
  bool sums_dw = false;
  Scratch gemm;
  size_t bytes = 0;
};

template <class Args>
using PlanOf = Plan<typename Args::Elem>;

struct Chunk {
  int64_t first, rows;
};

template <class Args>
Chunk chunk_at(const Args& a, const PlanOf<Args>& p, int64_t index) {
  const int64_t first = index * p.chunk;
  return {first, std::min(p.chunk, a.x.shape[0] - first)};
}

// The row of a matrix; nullptr where there is no memory, as when only sizes are asked for.
template <class T>
T* row_of(const View<T, 2>& v, int64_t row) {
  return v ? v.data + row * v.stride[0] : nullptr;
}

template <class Args>
Gemm logits_gemm(const Args& a, const PlanOf<Args>& p, Chunk c) {
  constexpr DType kType = dtype_of<typename Args::Elem>;
  return {.m = c.rows,
          .n = a.w.shape[0],
          .k = a.x.shape[1],
          .in_type = kType,
          .out_type = kType,
          .a = row_of(a.x, c.first),
          .b = a.w.data,
          .c = p.logits,
          .lda = a.x.stride[0],
          .ldb = a.w.stride[0],
          .ldc = p.stride,
          .transpose_b = true};
}

template <class Args>
Gemm dx_gemm(const Args& a, const PlanOf<Args>& p, Chunk c) {
  constexpr DType kType = dtype_of<typename Args::Elem>;
  return {.m = c.rows,
          .n = a.x.shape[1],
          .k = a.w.shape[0],
          .in_type = kType,
          .out_type = kType,
          .a = p.logits,
          .b = a.w.data,
          .c = row_of(a.dx, planted("linear_cross_entropy.dx_of_first_chunk") ? 0 : c.first),
          .lda = p.stride,
          .ldb = a.w.stride[0],
          .ldc = a.dx.stride[0]};
}

template <class Args>
Gemm dw_gemm(const Args& a, const PlanOf<Args>& p, Chunk c) {
  constexpr DType kType = dtype_of<typename Args::Elem>;
  const bool direct = !p.sums_dw;
  const bool adds = (c.first != 0 && !planted("linear_cross_entropy.dw_of_last_chunk")) ||
                    planted("linear_cross_entropy.dw_not_cleared");
  return {.m = a.w.shape[0],
          .n = a.x.shape[1],
          .k = c.rows,
          .in_type = kType,
          .out_type = direct ? kType : DType::kF32,
          .a = p.logits,
          .b = row_of(a.x, c.first),
          .c = direct ? static_cast<void*>(a.dw.data) : p.dw_sum,
          .lda = p.stride,
          .ldb = a.x.stride[0],
          .ldc = direct ? a.dw.stride[0] : a.x.shape[1],
          .transpose_a = true,
          .beta = adds ? 1.0f : 0.0f};
}

// Calls f(gemm) for the GEMMs of a chunk until one fails. The row sweep comes after the first.
template <class Args, class F>
Status for_gradient_gemms(const Args& a, const PlanOf<Args>& p, Chunk c, F f) {
  if constexpr (WritesGradients<Args>) {
    if (a.dx) {
      if (const Status s = f(dx_gemm(a, p, c)); !s.ok()) return s;
    }
    if (a.dw) return f(dw_gemm(a, p, c));
  }
  return {};
}

template <class Args>
PlanOf<Args> plan(const Args& a, void* data) {
  using Elem = typename Args::Elem;
  const int64_t rows = a.x.shape[0];
  PlanOf<Args> p;
  p.chunk = chunk_rows(a);
  p.chunks = ceil_div(rows, p.chunk);
  p.stride = logits_stride(a);
  ScratchParts parts(data);
  if (needs_totals(a, static_cast<bool>(a.class_weight))) p.totals = parts.take<LossTotals>(1);
  const auto take = [&](bool wanted) { return wanted ? parts.take<float>(rows) : nullptr; };
  if (a.reduction != Reduction::kNone) {
    p.loss = take(true);
    p.z_part = take(static_cast<bool>(a.z_part));
    p.accuracy = take(static_cast<bool>(a.accuracy));
    p.entropy = take(static_cast<bool>(a.entropy));
  }
  if (rows > 0) p.logits = parts.take<Elem>(p.chunk * p.stride);
  if constexpr (WritesGradients<Args>) {
    p.sums_dw = a.dw && p.chunks > 1 && !std::is_same_v<Elem, float> &&
                !planted("linear_cross_entropy.dw_summed_as_stored");
    if (p.sums_dw) p.dw_sum = parts.take<float>(a.w.shape[0] * a.x.shape[1]);
  }
  size_t& gemm_bytes = p.gemm.bytes;
  const auto widen = [&](const Gemm& g) {
    gemm_bytes = std::max(gemm_bytes, gemm_workspace(g));
    return Status{};
  };
  for (int64_t i = 0; i < p.chunks; i += std::max<int64_t>(1, p.chunks - 1)) {  // first and last
    const Chunk c = chunk_at(a, p, i);
    widen(logits_gemm(a, p, c));
    for_gradient_gemms(a, p, c, widen);
  }
  p.gemm.data = parts.template take<char>(static_cast<int64_t>(gemm_bytes));
  p.bytes = parts.bytes();
  return p;
}

// to = from rounded to T, or 0 where `from` is null. One block per row at a time; the first
// `vectors` pieces of 16 bytes of a row of `to` are written whole.
template <class T>
TIGON_KERNEL(kThreads)
round_kernel(const float* from,  // [rows, columns]
             T* to,              // [rows, columns], rows `stride` apart
             int64_t rows, int columns, int64_t stride, int vectors) {
  constexpr int kWidth = kVec<T>, kQuads = kWidth / 4;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* source = from + row * columns;
    T* const target = to + row * stride;
    for (int i = static_cast<int>(threadIdx.x); i < vectors; i += kThreads) {
      float f[kWidth] = {};
      TIGON_UNROLL
      for (int q = 0; q < kQuads && from != nullptr; ++q) {
        const Vec<float> quad = load16_stream(source + i * kWidth + 4 * q);
        TIGON_UNROLL
        for (int j = 0; j < 4; ++j) f[4 * q + j] = quad[j];
      }
      store16(target + i * kWidth, pack<T>(f));
    }
    for (int i = vectors * kWidth + static_cast<int>(threadIdx.x); i < columns; i += kThreads)
      store(target + i, from_float<T>(from != nullptr ? load_stream(source + i) : 0.0f));
  }
}

template <class P>
Status write_dw(const ForwardBackward<P>& a, const float* sum, Stream stream) {
  using Elem = typename P::Elem;
  const int64_t rows = a.dw.shape[0];
  const int columns = static_cast<int>(a.dw.shape[1]);
  // Rows of the sum start at a multiple of 16 bytes only when their length is one.
  const bool aligned = columns % kVec<Elem> == 0 && rows_aligned16(a.dw);
  return launch({.grid = dim3(static_cast<unsigned>(std::min(rows, kMaxBlocks))),
                 .block = dim3(kThreads),
                 .stream = stream},
                round_kernel<Elem>, sum, a.dw.data, rows, columns, a.dw.stride[0],
                aligned ? columns / kVec<Elem> : 0);
}

template <class T>
bool is_matrix(const View<T, 2>& v, int64_t rows, int64_t columns) {
  return has_shape(v, rows, columns) && (rows <= 1 || v.stride[0] >= columns);
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
  if (!has_shape(a.loss, losses) || is_missing(a.loss))
    return invalid("linear_cross_entropy: loss must be [T] with reduction none, else [1]");
  for (const auto* result : {&a.z_part, &a.accuracy, &a.entropy})
    if (*result && !has_shape(*result, losses))
      return invalid(
          "linear_cross_entropy: z_part, accuracy and entropy must be [T] with reduction none, "
          "else [1]");
  if (a.class_weight && !has_shape(a.class_weight, columns))
    return invalid("linear_cross_entropy: class_weight must be [V]");
  if (!(a.label_smoothing >= 0.0f && a.label_smoothing <= 1.0f))
    return invalid("linear_cross_entropy: label_smoothing must be in [0, 1]");
  if constexpr (WritesGradients<Args>) {
    if (a.dloss && !has_shape(a.dloss, losses))
      return invalid("linear_cross_entropy: dloss must be [T] with reduction none, else [1]");
    if ((a.dx && !is_matrix(a.dx, rows, hidden)) || (a.dw && !is_matrix(a.dw, columns, hidden)))
      return invalid("linear_cross_entropy: dx must be shaped like x, and dw like w");
  }
  return {};
}

// What the row sweep of a chunk works on.
template <class Args>
LossRows<typename Args::Elem> rows_of(const Args& a, const PlanOf<Args>& p, Chunk c) {
  const bool none = a.reduction == Reduction::kNone;
  const auto at = [&](float* reduced, const View<float, 1>& out) {
    float* const first = none ? out.data : reduced;
    return first != nullptr ? first + c.first : nullptr;
  };
  LossRows<typename Args::Elem> rows{
      .pass = LossPass::kForward,
      .options = a,
      .rows = c.rows,
      .columns = a.w.shape[0],
      .logits = p.logits,
      .stride = planted("linear_cross_entropy.padding_ignored") ? a.w.shape[0] : p.stride,
      .target =
          a.target.data + (planted("linear_cross_entropy.targets_of_first_chunk") ? 0 : c.first),
      .class_weight = a.class_weight.data,
      .totals = p.totals,
      .loss = at(p.loss, a.loss),
      .lse = a.lse.data + c.first,
      .z_part = at(p.z_part, a.z_part),
      .accuracy = at(p.accuracy, a.accuracy),
      .entropy = at(p.entropy, a.entropy),
  };
  if constexpr (WritesGradients<Args>) {
    if (a.dx || a.dw) rows.pass = LossPass::kForwardBackward;
    const bool moves = none && !planted("linear_cross_entropy.dloss_of_first_chunk");
    if (a.dloss) rows.dloss = a.dloss.data + (moves ? c.first : 0);
  }
  return rows;
}

template <class Args>
Status run_chunk(const Args& a, const PlanOf<Args>& p, Chunk c, Stream stream) {
  if (const Status s = gemm(logits_gemm(a, p, c), p.gemm, stream); !s.ok()) return s;
  if (const Status s = loss_rows(rows_of(a, p, c), stream); !s.ok()) return s;
  return for_gradient_gemms(a, p, c, [&](const Gemm& g) { return gemm(g, p.gemm, stream); });
}

template <class Args>
Status run(const Args& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  const PlanOf<Args> p = plan(a, a.scratch.data);
  if (a.scratch.bytes < p.bytes || (p.bytes > 0 && a.scratch.data == nullptr))
    return invalid("linear_cross_entropy: scratch is smaller than workspace()");
  const int64_t rows = a.x.shape[0];
  if (p.totals != nullptr) {
    const Status s =
        count_rows(a.target.data, rows, a, a.class_weight.data, a.w.shape[0], p.totals, stream);
    if (!s.ok()) return s;
  }
  const bool loses_rest = planted("linear_cross_entropy.last_chunk_lost") && rows % p.chunk != 0;
  for (int64_t i = 0; i < p.chunks - loses_rest; ++i) {
    if (const Status s = run_chunk(a, p, chunk_at(a, p, i), stream); !s.ok()) return s;
  }
  if constexpr (WritesGradients<Args>) {
    if (a.dw && (p.sums_dw || rows == 0)) {
      if (const Status s = write_dw(a, p.dw_sum, stream); !s.ok()) return s;
    }
  }
  if (a.reduction == Reduction::kNone) return {};
  return reduce_results(a, rows_of(a, p, {0, rows}), stream);
}

template <class Args>
Status tune_all(const Args& a) {
  if (const Status s = check(a); !s.ok()) return s;
  const PlanOf<Args> p = plan(a, a.scratch.data);
  for (int64_t i = 0; i < p.chunks; ++i) {
    const Chunk c = chunk_at(a, p, i);
    if (const Status s = gemm_tune(logits_gemm(a, p, c)); !s.ok()) return s;
    if (const Status s = for_gradient_gemms(a, p, c, gemm_tune); !s.ok()) return s;
  }
  return {};
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
  return plan(a, nullptr).bytes;
}
template <class P>
size_t workspace(const ForwardBackward<P>& a) {
  return plan(a, nullptr).bytes;
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
