// SPDX-License-Identifier: Apache-2.0
// Unfused linear_policy: whole logits, then log-probabilities and their losses in eager mode.
#pragma once
#include "kernels/linear_policy/linear_policy.h"

namespace tigon::naive {

// As in tigon::linear_policy, for F32, BF16 and F16; memory for every intermediate is allocated and
// freed on the way. kUnsupported: `clipped`, for which there is no primitive.
template <class P>
Status forward(const linear_policy::Forward<P>& args, Stream stream);
template <class P>
Status forward_backward(const linear_policy::ForwardBackward<P>& args, Stream stream);

}  // namespace tigon::naive
