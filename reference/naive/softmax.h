// SPDX-License-Identifier: Apache-2.0
// Unfused softmax: the library's, between the copies that rows with gaps need.
#pragma once
#include "kernels/softmax/softmax.h"

namespace tigon::naive {

// As tigon::softmax::forward and backward, for F32, BF16 and F16.
template <class P>
Status forward(const softmax::Forward<P>& args, Stream stream);
template <class P>
Status backward(const softmax::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
