// Unfused swiglu: silu(gate) * up in eager mode.
#pragma once
#include "kernels/swiglu/swiglu.h"

namespace tigon::naive::swiglu {

using tigon::swiglu::Backward;
using tigon::swiglu::Forward;

// As tigon::swiglu::forward and backward, for F32, BF16 and F16; memory for every intermediate is
// allocated and freed on the way.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::naive::swiglu
