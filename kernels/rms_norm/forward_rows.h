// What a forward kernel that normalises rows does with one: rms_norm's, and add_rms_norm's, whose
// rows are sums.
#pragma once
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rms_norm/row.h"

namespace tigon::rms_norm {

// x becomes y.
template <class P, int kWidth>
TIGON_DEVICE void normalise(const Forward<P>& args, const Piece<typename P::Elem, kWidth>& w,
                            float rstd, float (&x)[kWidth]) {
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) x[j] *= rstd;
  if (args.casting != Casting::kGemma || planted("rms_norm.gemma_rounds_twice"))
    round_piece<typename P::Elem>(x);
  if (args.casting != Casting::kNone) return multiply_weight(args, w, x);
  float gain[kWidth];
  for (float& g : gain) g = 1.0f;
  multiply_weight(args, w, gain);
  round_piece<typename P::Elem>(gain);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) x[j] *= gain[j];
}

// The row of this thread; lanes of a warp or a whole block share it. `input` says where it is from:
//   start(row)            before anything else; the row may be beyond the last
//   load(i, p, kept)      starts to read piece i, the thread's p-th
//   finish(i, p, kept, f) makes it the piece that is normalised; f its values
//   at(i, f)              both, for a piece that does not fit into registers; it is in args.x then
template <class P, int kWidth, int kLanes, int kPieces, bool kRest, class Input>
TIGON_DEVICE void forward_rows(const Forward<P>& args, Input input) {
  using T = typename P::Elem;
  constexpr int kRows = kRowsPerBlock<kLanes>, kKept = kLanes * kPieces;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kLanes;
  const bool active = row < args.x.shape[0];
  const int lane = threadIdx.x % kLanes;
  if (planted("rms_norm.idle_rows_return") && !active) return;
  const int64_t h = args.x.shape[1];
  const int64_t tail = planted("rms_norm.tail_unmasked") ? kVec<T> - 1 : 0;
  const int64_t pieces = active ? (h + tail) / kWidth : 0;
  input.start(row);
  const int64_t offset = row * args.y.stride[0];
  const bool narrow = planted("rms_norm.offset_in_int32");
  T* y = args.y.data + (narrow ? static_cast<int32_t>(offset) : offset);  // [H], as x

  Piece<T, kWidth> kept[kPieces] = {}, weight[kPieces] = {};
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (const int i = p * kLanes + lane; i < pieces + planted("rms_norm.read_past_row"))
      input.load(i, p, kept[p]);
  // Now, so that nothing is waited for after the sum.
  load_lane_pieces<kWidth, kLanes>(args.w.data, h, lane, weight);

  float f[kWidth], squares[kWidth] = {};
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (const int i = p * kLanes + lane; i < pieces) {
      input.finish(i, p, kept[p], f);
      add_products(f, f, squares);
      for (int j = 0; j < kWidth && planted("rms_norm.squares_in_bf16"); ++j)
        squares[j] = to_float(from_float<bf16>(squares[j]));
    }
  if constexpr (kRest)
    for (int64_t i = kKept + lane; i < pieces; i += kLanes) {
      input.at(i, f);
      add_products(f, f, squares);
    }
  float mean = row_sum<kLanes>(sum_of(squares), 0) / static_cast<float>(h);
  if (planted("rms_norm.sum_for_mean")) mean *= static_cast<float>(h);
  if (planted("rms_norm.nan_swallowed")) mean = fmaxf(mean, 0.0f);
  float rstd = fast_rsqrt(mean + args.eps);
  if (planted("rms_norm.eps_missing")) rstd = fast_rsqrt(mean);
  if (planted("rms_norm.eps_outside_root")) rstd = 1.0f / (sqrtf(mean) + args.eps);
  if (lane == 0 && active) store(args.rstd.data + row, rstd);
  if (args.casting == Casting::kNone) rstd = to_float(from_float<T>(rstd));

  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (const int i = p * kLanes + lane; i < pieces + planted("rms_norm.row_overrun")) {
      keep_packed(kept[p]);
      keep_packed(weight[p]);
      unpack_piece(kept[p], f);
      normalise(args, weight[p], rstd, f);
      store_piece(y + i * kWidth, f);
    }
  if constexpr (kRest) {
    const T* x = args.x.data + row * args.x.stride[0];  // [H]
    for (int64_t i = kKept + lane; i < pieces; i += kLanes) {
      unpack_piece(load_piece<kWidth>(x + i * kWidth), f);
      normalise<P>(args, load_if_given<kWidth>(args.w.data, i), rstd, f);
      store_piece(y + i * kWidth, f);
    }
  }
}

}  // namespace tigon::rms_norm
