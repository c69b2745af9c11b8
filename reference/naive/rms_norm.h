// SPDX-License-Identifier: Apache-2.0
// Unfused rms_norm: the steps of Hugging Face's LlamaRMSNorm and GemmaRMSNorm in eager mode.
#pragma once
#include "kernels/rms_norm/rms_norm.h"

namespace tigon::naive {

// As tigon::rms_norm::forward and backward, for F32, BF16 and F16; memory for every intermediate
// is allocated and freed on the way.
template <class P>
Status forward(const rms_norm::Forward<P>& args, Stream stream);
template <class P>
Status backward(const rms_norm::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
