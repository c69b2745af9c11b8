// SPDX-License-Identifier: Apache-2.0
// Unfused layer_norm: one step per primitive, in fp32 between the casts at both ends.
#pragma once
#include "kernels/layer_norm/layer_norm.h"

namespace tigon::naive {

// As tigon::layer_norm::forward and backward, for F32, BF16 and F16; memory for every intermediate
// is allocated and freed on the way.
template <class P>
Status forward(const layer_norm::Forward<P>& args, Stream stream);
template <class P>
Status backward(const layer_norm::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
