// rms_norm   y[t,h] = x[t,h] * rstd[t] * (offset + w[h]),  rstd[t] = rsqrt(mean_h x[t,h]^2 + eps)
//
// Lanes of a warp or a whole block per row; x is read once and kept in registers as stored. Bytes:
// (2*T*H + H)*elem + 4*T. Sums in float. Backward: see backward_kernel.h.
#include "kernels/rms_norm/rms_norm.h"

#include <algorithm>

#include "kernels/rms_norm/backward_kernel.h"
#include "kernels/rms_norm/row.h"
#include "kernels/signature/checks.h"

namespace tigon::rms_norm {
namespace {

// Up to 64, 128, 256, 1024, 2048, 4096, 8192, 16384 and 32768 columns of bf16. Four pieces a thread
// are enough bytes in flight and leave room for 1024 threads per SM: 88-92% of copy bandwidth on an
// H200 from 2048 columns on, against 80-90% with eight.
constexpr RowTable<9> kForwardVectors = {"rms_norm.forward.vectors",
                                         {{8, 1, 8},
                                          {16, 1, 8},
                                          {32, 1, 8},
                                          {32, 4, 8},
                                          {128, 2, 8},
                                          {128, 4, 8},
                                          {256, 4, 4},
                                          {512, 4, 2},
                                          {512, 8, 1}}};
constexpr RowTable<4> kForwardElements = {"rms_norm.forward.elements",
                                          {{32, 8, 8}, {32, 16, 5}, {128, 16, 5}, {256, 16, 2}}};

// Up to 64, 128, 256, 1024, 4096, 8192 and 16384 columns of bf16. A 16-byte piece costs up to 28
// registers (x, dy, both of the next row, w, eight sums of dw).
constexpr RowTable<8> kBackwardVectors = {"rms_norm.backward.vectors",
                                          {{8, 1, 7},
                                           {16, 1, 7},
                                           {32, 1, 7},
                                           {32, 4, 3},
                                           {128, 4, 3},
                                           {256, 4, 1},
                                           {512, 4, 1},
                                           {512, 1, 1}}};
constexpr RowTable<4> kBackwardElements = {"rms_norm.backward.elements",
                                           {{32, 8, 4}, {32, 16, 3}, {128, 16, 3}, {256, 16, 1}}};

// x becomes y.
template <class P, int kWidth>
TIGON_DEVICE void normalise(const Forward<P>& args, const Piece<typename P::Elem, kWidth>& w,
                            float rstd, float (&x)[kWidth]) {
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) x[j] *= rstd;
  if (args.casting == Casting::kLlama || planted("rms_norm.gemma_rounds_twice"))
    round_piece<typename P::Elem>(x);
  multiply_weight(args, w, x);
}

template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, bool kRest>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
forward_kernel(Forward<P> args) {
  using T = typename P::Elem;
  constexpr int kRows = kRowsPerBlock<kLanes>, kKept = kLanes * kPieces;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kLanes;
  const bool active = row < args.x.shape[0];
  const int lane = threadIdx.x % kLanes;
  if (planted("rms_norm.idle_rows_return") && !active) return;
  const int64_t h = args.x.shape[1];
  const int64_t tail = planted("rms_norm.tail_unmasked") ? kVec<T> - 1 : 0;
  const int64_t pieces = active ? (h + tail) / kWidth : 0;
  const T* x = args.x.data + row * (planted("rms_norm.stride_ignored") ? h : args.x.stride[0]);
  const int64_t offset = row * args.y.stride[0];
  const bool narrow = planted("rms_norm.offset_in_int32");
  T* y = args.y.data + (narrow ? static_cast<int32_t>(offset) : offset);  // [H], as x

  Piece<T, kWidth> kept[kPieces] = {}, weight[kPieces] = {};
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (const int i = p * kLanes + lane; i < pieces + planted("rms_norm.read_past_row"))
      kept[p] = load_piece_stream<kWidth>(x + i * kWidth);
  // Now, so that nothing is waited for after the sum.
  load_lane_pieces<kWidth, kLanes>(args.w.data, h, lane, weight);

  float f[kWidth], squares[kWidth] = {};
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (p * kLanes + lane < pieces) {
      unpack_piece(kept[p], f);
      add_products(f, f, squares);
      for (int j = 0; j < kWidth && planted("rms_norm.squares_in_bf16"); ++j)
        squares[j] = to_float(from_float<bf16>(squares[j]));
    }
  if constexpr (kRest)
    for (int64_t i = kKept + lane; i < pieces; i += kLanes) {
      unpack_piece(load_piece<kWidth>(x + i * kWidth), f);
      add_products(f, f, squares);
    }
  float mean = row_sum<kLanes>(sum_of(squares)) / static_cast<float>(h);
  if (planted("rms_norm.sum_for_mean")) mean *= static_cast<float>(h);
  if (planted("rms_norm.nan_swallowed")) mean = fmaxf(mean, 0.0f);
  float rstd = fast_rsqrt(mean + args.eps);
  if (planted("rms_norm.eps_missing")) rstd = fast_rsqrt(mean);
  if (planted("rms_norm.eps_outside_root")) rstd = 1.0f / (sqrtf(mean) + args.eps);
  if (lane == 0 && active) store(args.rstd.data + row, rstd);

  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (const int i = p * kLanes + lane; i < pieces + planted("rms_norm.row_overrun")) {
      keep_packed(kept[p]);
      keep_packed(weight[p]);
      unpack_piece(kept[p], f);
      normalise(args, weight[p], rstd, f);
      store_piece(y + i * kWidth, f);
    }
  if constexpr (kRest)
    for (int64_t i = kKept + lane; i < pieces; i += kLanes) {
      unpack_piece(load_piece<kWidth>(x + i * kWidth), f);
      normalise<P>(args, load_if_given<kWidth>(args.w.data, i), rstd, f);
      store_piece(y + i * kWidth, f);
    }
}

// ---- launchers ----------------------------------------------------------------------------------

template <class P, int kWidth>
Status launch_forward(const Forward<P>& args, Stream stream) {
  const int64_t rows = args.x.shape[0];
  int64_t pieces = args.x.shape[1] / kWidth;
  if (planted("rms_norm.first_shape_kept")) {
    static const int64_t first = pieces;
    pieces = first;
  }
  const auto run = [&]<int kLanes, int kPieces, int kBlocksPerSm, bool kRest> {
    const auto blocks = static_cast<unsigned>(ceil_div(rows, int64_t{kRowsPerBlock<kLanes>}));
    return launch({dim3(blocks), dim3(kRowThreads<kLanes>), 0, stream},
                  forward_kernel<P, kWidth, kLanes, kPieces, kBlocksPerSm, kRest>, args);
  };
  if constexpr (kWidth == 1)
    return with_row_shape<kForwardElements>(pieces, run);
  else
    return with_row_shape<kForwardVectors>(pieces, run);
}

template <class P, int kWidth>
Status launch_backward(const Backward<P>& args, Stream stream) {
  const int64_t rows = args.x.shape[0], h = args.x.shape[1];
  float* partials = args.dw ? static_cast<float*>(args.scratch.data) : nullptr;
  unsigned blocks = 0;
  const auto run = [&]<int kLanes, int kPieces, int kBlocksPerSm, bool kRest> {
    blocks = column_sum_blocks<kLanes, kBlocksPerSm>(rows);
    return launch({dim3(blocks), dim3(kRowThreads<kLanes>), 0, stream},
                  backward_kernel<P, kWidth, kLanes, kPieces, kBlocksPerSm, kRest>, args, partials);
  };
  Status status;
  if constexpr (kWidth == 1)
    status = with_row_shape<kBackwardElements>(h, run);
  else
    status = with_row_shape<kBackwardVectors>(h / kWidth, run);
  if (!status.ok() || !args.dw) return status;
  return launch_partial_sums(partials, blocks, h, args.dw.data, stream);
}

// Common to both passes. Block indices are 31 bits.
Status check_sizes(int64_t t, int64_t h) {
  if (t < 0 || h < 1) return invalid("x must be [T, H] with T >= 0 and H >= 1");
  if (t > INT32_MAX) return unsupported("x has too many rows: at most 2^31 - 1");
  return {};
}

// The rows and the weight can be read in 16-byte pieces.
template <class P, class... Views>
bool in_vectors(const View<const typename P::Elem, 1>& w, const Views&... views) {
  const bool aligned = is_aligned16(w.data) && (rows_aligned16(views) && ...);
  return (aligned || planted("rms_norm.alignment_unchecked")) &&
         ((views.shape[1] % kVec<typename P::Elem> == 0) && ...);
}

}  // namespace

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  if (Status bad = check_sizes(t, h); !bad.ok()) return bad;
  if (!has_shape(args.x, t, h) || !has_shape(args.y, t, h))
    return invalid("x and y must both be [T, H] with unit stride along H");
  if (args.w && !has_shape(args.w, h)) return invalid("w must be [H] with unit stride");
  if (!has_shape(args.rstd, t)) return invalid("rstd must be [T] with unit stride");
  if (is_missing(args.x) || is_missing(args.y) || is_missing(args.rstd))
    return invalid("x, y or rstd is null: only w may be left out");
  return in_vectors<P>(args.w, args.x, args.y)
             ? launch_forward<P, kVec<typename P::Elem>>(args, stream)
             : launch_forward<P, 1>(args, stream);
}

// Enough for aligned rows and for others, so that it does not depend on addresses.
template <class P>
size_t workspace(const Backward<P>& args) {
  if (!args.dw) return 0;
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  const auto blocks = [&]<int kLanes, int, int kBlocksPerSm, bool> {
    return column_sum_blocks<kLanes, kBlocksPerSm>(t);
  };
  const unsigned rows =
      std::max(with_row_shape<kBackwardVectors>(h / kVec<typename P::Elem>, blocks),
               with_row_shape<kBackwardElements>(h, blocks));
  return size_t{rows} * static_cast<size_t>(h) * sizeof(float);
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  if (Status bad = check_sizes(t, h); !bad.ok()) return bad;
  if (!has_shape(args.x, t, h) || !has_shape(args.dy, t, h) || !has_shape(args.dx, t, h))
    return invalid("dy, x and dx must all be [T, H] with unit stride along H");
  if (args.w && !has_shape(args.w, h)) return invalid("w must be [H] with unit stride");
  if (!has_shape(args.rstd, t)) return invalid("rstd must be [T] with unit stride");
  if (is_missing(args.dy) || is_missing(args.x) || is_missing(args.dx) || is_missing(args.rstd))
    return invalid("dy, x, dx or rstd is null: only w and dw may be left out");
  if (args.dw && !args.w) return invalid("dw is given without w: give w, or leave out dw");
  if (args.dw && !has_shape(args.dw, h)) return invalid("dw must be [H] with unit stride");
  if (args.scratch.bytes < workspace(args))
    return invalid("scratch is smaller than workspace(args)");
  if (workspace(args) > 0 && (args.scratch.data == nullptr || !is_aligned16(args.scratch.data)))
    return invalid("scratch is null or not 256-byte aligned");
  return in_vectors<P>(args.w, args.dy, args.x, args.dx)
             ? launch_backward<P, kVec<typename P::Elem>>(args, stream)
             : launch_backward<P, 1>(args, stream);
}

template Status forward<F32>(const Forward<F32>&, Stream);
template Status forward<BF16>(const Forward<BF16>&, Stream);
template Status forward<F16>(const Forward<F16>&, Stream);
template Status backward<F32>(const Backward<F32>&, Stream);
template Status backward<BF16>(const Backward<BF16>&, Stream);
template Status backward<F16>(const Backward<F16>&, Stream);
template size_t workspace<F32>(const Backward<F32>&);
template size_t workspace<BF16>(const Backward<BF16>&);
template size_t workspace<F16>(const Backward<F16>&);

}  // namespace tigon::rms_norm
