// SPDX-License-Identifier: Apache-2.0
// Unfused cross_entropy: logits.float(), log_softmax, nll_loss in eager mode, as in Hugging Face's
// ForCausalLMLoss.
#pragma once
#include "kernels/cross_entropy/cross_entropy.h"

namespace tigon::naive {

// As in tigon::cross_entropy, for F32, BF16 and F16; memory for every intermediate is allocated
// and freed on the way, scratch is not used.
template <class P>
Status forward(const cross_entropy::Forward<P>& args, Stream stream);
template <class P>
Status backward(const cross_entropy::Backward<P>& args, Stream stream);
template <class P>
Status forward_backward(const cross_entropy::ForwardBackward<P>& args, Stream stream);

}  // namespace tigon::naive
