// Unfused add_rms_norm: Hugging Face's `hidden_states = residual + hidden_states` before its norm.
#pragma once
#include "kernels/add_rms_norm/add_rms_norm.h"

namespace tigon::naive::add_rms_norm {

using tigon::add_rms_norm::Backward;
using tigon::add_rms_norm::Forward;

// As tigon::add_rms_norm::forward and backward, for F32, BF16 and F16; memory for every
// intermediate is allocated and freed on the way.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::naive::add_rms_norm
