// SPDX-License-Identifier: Apache-2.0
// rms_norm by cuDNN's fused engines.
#pragma once
#include "kernels/rms_norm/rms_norm.h"

namespace tigon::cudnn::rms_norm {

using tigon::rms_norm::Backward;
using tigon::rms_norm::Forward;

// As tigon::rms_norm::forward and backward, for F32, BF16 and F16. y is rounded once, whatever
// casting says: no further from the formula than any of them. kUnsupported for rows with gaps, for
// addresses that are no multiple of 16 bytes, and for dw without w.
template <class P>
Status forward(const Forward<P>& args, const Scratch& scratch, Stream stream);
template <class P>
Status backward(const Backward<P>& args, const Scratch& scratch, Stream stream);

// Bytes of scratch that a call needs: what the engine asks for, and in fp32 offset + w and a dw
// that is not wanted.
template <class P>
size_t workspace(const Forward<P>& args);
template <class P>
size_t workspace(const Backward<P>& args);

}  // namespace tigon::cudnn::rms_norm
