// SPDX-License-Identifier: Apache-2.0
// The plane of sizes that `tigon bench --grid` measures: every width, and not the named ones only.
#pragma once
#include <cstdint>
#include <vector>

#include "harness/run/check.h"

namespace tigon::cli {

inline constexpr int kDrawnWidths = 40;

// Sizes of all axes but the first, which counts rows: those that trained models have, and
// kDrawnWidths in which the last axis has another size within their range, drawn with `seed` evenly
// by its logarithm. Half of those are multiples of 8.
std::vector<std::map<std::string, int64_t>> grid_widths(const OpSpec& op, uint64_t seed);

// Cases of the request's ops, passes, implementations (without baselines, where it names none) and
// dtypes (bf16, where it names none): widths by rows, of which there are powers of two to 65,536
// and their neighbours; sizes that the request gives stand in place of these. Ops and passes in
// turn, each in an order that is drawn: any beginning covers the plane. `host`: what the host
// executor can do. Throws UsageError.
std::vector<Case> grid_cases(const CheckRequest& request, uint64_t seed, bool host);

}  // namespace tigon::cli
