// SPDX-License-Identifier: Apache-2.0
// Unfused linear_divergence: whole logits of both layers, then divergence in eager mode.
#pragma once
#include "kernels/linear_divergence/linear_divergence.h"

namespace tigon::naive {

// As in tigon::linear_divergence, for F32, BF16 and F16; memory for every intermediate is allocated
// and freed on the way.
template <class P>
Status forward(const linear_divergence::Forward<P>& args, Stream stream);
template <class P>
Status backward(const linear_divergence::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
