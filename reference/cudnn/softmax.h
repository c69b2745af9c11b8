// SPDX-License-Identifier: Apache-2.0
// softmax by cuDNN's one kernel for it.
#pragma once
#include "kernels/softmax/softmax.h"

namespace tigon::cudnn::softmax {

using tigon::softmax::Backward;
using tigon::softmax::Forward;

// As tigon::softmax::forward and backward, for F32, BF16 and F16. kUnsupported for rows with gaps.
template <class P>
Status forward(const Forward<P>& args, const Scratch&, Stream stream);
template <class P>
Status backward(const Backward<P>& args, const Scratch&, Stream stream);

}  // namespace tigon::cudnn::softmax
