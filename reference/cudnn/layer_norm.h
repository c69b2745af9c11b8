// SPDX-License-Identifier: Apache-2.0
// layer_norm by cuDNN's fused engines.
#pragma once
#include "kernels/layer_norm/layer_norm.h"

namespace tigon::cudnn::layer_norm {

using tigon::layer_norm::Backward;
using tigon::layer_norm::Forward;

// As tigon::layer_norm::forward and backward, for F32, BF16 and F16. kUnsupported for rows with
// gaps, for addresses that are no multiple of 16 bytes, and for b, dw or db without w.
template <class P>
Status forward(const Forward<P>& args, const Scratch& scratch, Stream stream);
template <class P>
Status backward(const Backward<P>& args, const Scratch& scratch, Stream stream);

// Bytes of scratch that a call needs: what the engine asks for, and in fp32 w and a dw or db that
// is not wanted.
template <class P>
size_t workspace(const Forward<P>& args);
template <class P>
size_t workspace(const Backward<P>& args);

}  // namespace tigon::cudnn::layer_norm
