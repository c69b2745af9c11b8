// SPDX-License-Identifier: Apache-2.0
// Unfused divergence: log_softmax of both in float, torch.nn.functional.kl_div and, for the
// mixture, a logsumexp of two, in eager mode as TRL's GKDTrainer has it.
#pragma once
#include "kernels/divergence/divergence.h"

namespace tigon::naive {

// As in tigon::divergence, for F32, BF16 and F16; memory for every intermediate is allocated and
// freed on the way.
template <class P>
Status forward(const divergence::Forward<P>& args, Stream stream);
template <class P>
Status backward(const divergence::Backward<P>& args, Stream stream);

}  // namespace tigon::naive
