// SPDX-License-Identifier: Apache-2.0
// Where the failing elements of an output lie.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tigon {

// One short sentence, e.g. "only columns >= 120 of 127", "only row 3 of 8", "only every 4th column
// from 1", "only columns 4 to 7 of every 128 (lane 1 of a warp, 4 elements a lane)"; empty when
// there is no simple pattern. `failing` are row-major indices.
std::string failure_pattern(const std::vector<int64_t>& failing, const std::vector<int64_t>& shape);

}  // namespace tigon
