// SPDX-License-Identifier: Apache-2.0
// Unfused linear_cross_entropy: all logits by one GEMM, naive cross_entropy, two more GEMMs.
#pragma once
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

namespace tigon::naive {

// As in tigon::linear_cross_entropy, for F32, BF16 and F16; memory for every intermediate is
// allocated and freed on the way, scratch and logits_bytes are not used.
template <class P>
Status forward(const linear_cross_entropy::Forward<P>& args, Stream stream);
template <class P>
Status forward_backward(const linear_cross_entropy::ForwardBackward<P>& args, Stream stream);

}  // namespace tigon::naive
