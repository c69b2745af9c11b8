// SPDX-License-Identifier: Apache-2.0
// Unfused linear_log_prob: whole logits, then log_prob in eager mode.
#pragma once
#include "kernels/linear_log_prob/linear_log_prob.h"

namespace tigon::naive {

// As in tigon::linear_log_prob, for F32, BF16 and F16; memory for every intermediate is allocated
// and freed on the way.
template <class P>
Status forward(const linear_log_prob::Forward<P>& args, Stream stream);
template <class P>
Status backward(const linear_log_prob::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
