// SPDX-License-Identifier: Apache-2.0
// Pairwise covering: few cases in which every two values of different factors meet (Cohen et al.
// 1997, AETG), in place of the full product. Most faults need one value or two together (Kuhn et
// al. 2004).
#pragma once
#include <vector>

#include "harness/run/check.h"

namespace tigon {

// A choice of a value for every factor, as indices.
using Row = std::vector<size_t>;

// Rows for factors of these many values in which every pair of values meets; the first ones meet
// most. Deterministic.
std::vector<Row> pairwise_rows(const std::vector<size_t>& sizes);
// Pairs that are new with each row.
std::vector<size_t> gains_of(const std::vector<Row>& rows);

struct Covering {
  std::vector<Case> cases;
  std::vector<size_t> gains;  // pairs that are new with each case
  size_t pairs = 0;           // all of them
};

// Of each op, pass and implementation of the request: dtype, the sizes of each axis (those given,
// else the contract's), options, inputs and layout, pairwise, without the baseline unless it is
// named; ops and passes in turn. Filters and
// shards do not matter. Throws UsageError.
Covering covering_cases(const CheckRequest& request);

}  // namespace tigon
