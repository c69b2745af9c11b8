// SPDX-License-Identifier: Apache-2.0
// Why a call does not fit its op's signature, and the sizes that would. Slow; it is asked only when
// a call was refused, or for the shape of an output.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernels/call/pass_info.h"
#include "kernels/call/tigon.h"

namespace tigon::call {

// One sentence with tensor and axis; empty where the signature has no objection.
std::string explain(const PassInfo& info, const tigon_call& call);

// The sizes that a tensor must have beside the others of the call; nothing where they do not say.
std::optional<std::vector<int64_t>> sizes_of(const PassInfo& info, const tigon_call& call,
                                             size_t tensor);

}  // namespace tigon::call
