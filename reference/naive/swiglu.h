// SPDX-License-Identifier: Apache-2.0
// Unfused swiglu: silu(gate) * up in eager mode.
#pragma once
#include "kernels/swiglu/swiglu.h"

namespace tigon::naive {

// As tigon::swiglu::forward and backward, for F32, BF16 and F16; memory for every intermediate is
// allocated and freed on the way.
template <class P>
Status forward(const swiglu::Forward<P>& args, Stream stream);
template <class P>
Status backward(const swiglu::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
