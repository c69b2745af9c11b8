// SPDX-License-Identifier: Apache-2.0
// What a peer is asked, as JSON.
#pragma once
#include <filesystem>

#include "harness/record/record_writer.h"
#include "harness/run/judging/oracle.h"

namespace tigon::peers {

// The case's op, pass, options and tensors, and of a backward the inputs of its forward, which a
// peer runs for autograd. Inputs have a `plan` by which the peer fills them, or a `file` of
// values, written into `folder`, where the plan is not one of two simple ones.
Json measure_request(const Case& c, const std::filesystem::path& folder);

// The same with all inputs as files: those of `problem`.
Json outputs_request(const Problem& problem, const std::filesystem::path& folder);

}  // namespace tigon::peers
