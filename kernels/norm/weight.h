// SPDX-License-Identifier: Apache-2.0
// The weight of a norm, as forward and backward multiply it.
#pragma once
#include "kernels/device/row_lanes.h"

namespace tigon::norm {

// f *= offset + w, where there is a weight.
template <class Args, int kWidth>
TIGON_DEVICE void multiply_weight(const Args& args, const Piece<typename Args::Elem, kWidth>& w,
                                  float (&f)[kWidth]) {
  if (args.w.data == nullptr) return;
  float scale[kWidth];
  unpack_piece(w, scale);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) f[j] *= args.offset + scale[j];
}

}  // namespace tigon::norm
