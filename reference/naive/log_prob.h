// SPDX-License-Identifier: Apache-2.0
// Unfused log_prob: logits.float() / temperature, log_softmax, gather and the entropy in eager
// mode, as trainers of language models by reinforcement learning have it.
#pragma once
#include "kernels/log_prob/log_prob.h"

namespace tigon::naive {

// As in tigon::log_prob, for F32, BF16 and F16; memory for every intermediate is allocated and
// freed on the way.
template <class P>
Status forward(const log_prob::Forward<P>& args, Stream stream);
template <class P>
Status backward(const log_prob::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
