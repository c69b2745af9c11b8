// SPDX-License-Identifier: Apache-2.0
// Unfused add_rms_norm: Hugging Face's `hidden_states = residual + hidden_states` before its norm.
#pragma once
#include "kernels/add_rms_norm/add_rms_norm.h"

namespace tigon::naive {

// As tigon::add_rms_norm::forward and backward, for F32, BF16 and F16; memory for every
// intermediate is allocated and freed on the way.
template <class P>
Status forward(const add_rms_norm::Forward<P>& args, Stream stream);
template <class P>
Status backward(const add_rms_norm::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
