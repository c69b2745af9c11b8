// SPDX-License-Identifier: Apache-2.0
// A huge case looked up: what is run, which axis its rows are, and what its inputs hold.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/run/cases/case.h"
#include "harness/run/memory/tiled_tensor.h"

namespace tigon {

struct HugeCase {
  // `c` must outlive it. Throws UsageError where the contracts do not know the case.
  explicit HugeCase(const Case& c);

  // Packed bytes that an input is given in rows [first, first + count).
  std::vector<std::byte> input_rows(const TiledTensor& t, int64_t first, int64_t count) const;

  const Case& c;
  const OpSpec* op = nullptr;
  const Pass* pass = nullptr;
  const Implementation* implementation = nullptr;
  std::string row_axis;
  int64_t rows = 0;
  // All rows of the inputs that the pass before saves, by name; other inputs are as planned.
  std::map<std::string, std::vector<std::byte>> saved;
};

// Bytes of one row, at least 1.
int64_t row_bytes(const TiledTensor& t);

}  // namespace tigon
