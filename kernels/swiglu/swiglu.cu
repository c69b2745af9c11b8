// swiglu   y[t,f] = silu(a[t,f]) * b[t,f],  silu(a) = a * sigmoid(a)   (Shazeer 2020)
//
// A pure stream: each thread reads one piece of every input and writes one piece of every output.
// Bytes: 3*T*F*elem forward, 5*T*F*elem backward. Arithmetic in float, rounded once.
#include "kernels/swiglu/swiglu.h"

#include <algorithm>
#include <type_traits>

#include "kernels/device/device.h"
#include "kernels/device/pieces.h"
#include "kernels/signature/checks.h"

namespace tigon::swiglu {
namespace {

// One 16-byte piece per thread and no grid-stride loop: on an H200 a copy made this way is 7%
// faster than one that loops. 8 blocks of an SM have 64 KB of loads in flight; backward needs 40
// registers, so 6 of them, which have 72 KB.
constexpr int kThreads = 256;
template <class Args>
[[maybe_unused]] constexpr int kBlocksPerSm = 6;
template <class P>
constexpr int kBlocksPerSm<Forward<P>> = 8;
constexpr int64_t kMaxGridRows = 65535;  // limit of gridDim.y; blocks loop over further rows

template <int kWidth, class P>
TIGON_DEVICE void compute_piece(const Forward<P>& args, int64_t row, int64_t column) {
  float a[kWidth], b[kWidth];
  unpack_piece(load_piece_stream<kWidth>(args.a.data + row * args.a.stride[0] + column), a);
  unpack_piece(load_piece_stream<kWidth>(args.b.data + row * args.b.stride[0] + column), b);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) {
    const bool swapped = planted("swiglu.gate_and_up_swapped");
    const float gate = swapped ? b[j] : a[j], up = swapped ? a[j] : b[j];
    float silu = gate * sigmoid(gate);
    if (planted("swiglu.silu_in_bf16")) silu = to_float(from_float<bf16>(silu));
    a[j] = silu * up;
  }
  const int64_t stride = planted("swiglu.stride_ignored") ? args.y.shape[1] : args.y.stride[0];
  store_piece(args.y.data + row * stride + column, a);
}

// da and db may be a's and b's memory: every element is read by the thread that overwrites it,
// before it does.
template <int kWidth, class P>
TIGON_DEVICE void compute_piece(const Backward<P>& args, int64_t row, int64_t column) {
  float a[kWidth], b[kWidth], dy[kWidth];
  unpack_piece(load_piece_stream<kWidth>(args.dy.data + row * args.dy.stride[0] + column), dy);
  unpack_piece(load_piece_stream<kWidth>(args.a.data + row * args.a.stride[0] + column), a);
  unpack_piece(load_piece_stream<kWidth>(args.b.data + row * args.b.stride[0] + column), b);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) {
    if (planted("swiglu.dy_ignored")) dy[j] = 1.0f;
    const float s = sigmoid(a[j]);
    float silu = a[j] * s;
    if (planted("swiglu.silu_in_bf16")) silu = to_float(from_float<bf16>(silu));
    const float rest = planted("swiglu.derivative_term_missing") ? 0.0f : silu * (1.0f - s);
    const float da = dy[j] * b[j] * (s + rest), db = dy[j] * silu;
    const bool swapped = planted("swiglu.gradients_swapped");
    a[j] = swapped ? db : da;
    b[j] = swapped ? da : db;
  }
  store_piece(args.da.data + row * args.da.stride[0] + column, a);
  store_piece(args.db.data + row * args.db.stride[0] + column, b);
}

template <class Args, int kWidth>
TIGON_KERNEL(kThreads, kBlocksPerSm<Args>)
stream_kernel(Args args, int64_t rows, int64_t columns) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    if (first + (planted("swiglu.tail_unmasked") ? 1 : kWidth) <= columns)
      compute_piece<kWidth>(args, row, first);
    else if (!planted("swiglu.tail_dropped"))
      for (int64_t column = first; column < columns; ++column) compute_piece<1>(args, row, column);
  }
}

// Runs over all columns of all rows; as over one long row when no view has gaps between its rows.
template <class Args, class... Views>
Status stream_over(const Args& args, Stream stream, const Views&... views) {
  for (bool missing : {is_missing(views)...})
    if (missing) return invalid("a tensor is null: all tensors of swiglu are required");
  const int64_t t = args.a.shape[0], f = args.a.shape[1];
  if (t == 0) return {};
  const bool flat = (views.contiguous() && ...);
  const int64_t rows = flat ? 1 : t, columns = flat ? t * f : f;
  const bool aligned = planted("swiglu.alignment_unchecked") ||
                       (flat ? (is_aligned16(views.data) && ...) : (rows_aligned16(views) && ...));

  const auto run = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    const int64_t per_block = static_cast<int64_t>(kThreads) * kWidth;
    const dim3 grid(static_cast<unsigned>((columns + per_block - 1) / per_block),
                    static_cast<unsigned>(std::min(rows, kMaxGridRows)));
    return launch({grid, dim3(kThreads), 0, stream}, stream_kernel<Args, kWidth>, args, rows,
                  columns);
  };
  using T = std::remove_const_t<typename decltype(args.a)::Elem>;
  return aligned ? run(std::integral_constant<int, kVec<T>>{})
                 : run(std::integral_constant<int, 1>{});
}

}  // namespace

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  const int64_t t = args.a.shape[0], f = args.a.shape[1];
  if (t < 0 || f < 1) return invalid("a must be [T, F] with T >= 0 and F >= 1");
  if (!has_shape(args.a, t, f) || !has_shape(args.b, t, f) || !has_shape(args.y, t, f))
    return invalid("a, b and y must all be [T, F] with unit stride along F");
  return stream_over(args, stream, args.a, args.b, args.y);
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  const int64_t t = args.a.shape[0], f = args.a.shape[1];
  if (t < 0 || f < 1) return invalid("a must be [T, F] with T >= 0 and F >= 1");
  if (!has_shape(args.dy, t, f) || !has_shape(args.a, t, f) || !has_shape(args.b, t, f) ||
      !has_shape(args.da, t, f) || !has_shape(args.db, t, f))
    return invalid("dy, a, b, da and db must all be [T, F] with unit stride along F");
  return stream_over(args, stream, args.dy, args.a, args.b, args.da, args.db);
}

template Status forward<F32>(const Forward<F32>&, Stream);
template Status forward<BF16>(const Forward<BF16>&, Stream);
template Status forward<F16>(const Forward<F16>&, Stream);
template Status backward<F32>(const Backward<F32>&, Stream);
template Status backward<BF16>(const Backward<BF16>&, Stream);
template Status backward<F16>(const Backward<F16>&, Stream);

}  // namespace tigon::swiglu
