// SPDX-License-Identifier: Apache-2.0
// Unfused geglu: gelu(gate) * up in eager mode.
#pragma once
#include "kernels/geglu/geglu.h"

namespace tigon::naive {

// As tigon::geglu::forward and backward, for F32, BF16 and F16; memory for every intermediate is
// allocated and freed on the way.
template <class P>
Status forward(const geglu::Forward<P>& args, Stream stream);
template <class P>
Status backward(const geglu::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
