// SPDX-License-Identifier: Apache-2.0
// Unfused rope: q * cos + rotate_half(q) * sin in eager mode, as in Hugging Face's
// apply_rotary_pos_emb.
#pragma once
#include "kernels/rope/rope.h"

namespace tigon::naive {

// As tigon::rope::forward and backward, for F32, BF16 and F16; memory for every intermediate is
// allocated and freed on the way.
template <class P>
Status forward(const rope::Forward<P>& args, Stream stream);
template <class P>
Status backward(const rope::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
