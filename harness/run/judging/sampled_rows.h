// SPDX-License-Identifier: Apache-2.0
// Some rows of a huge case compared with the oracle: they alone are a small case.
#pragma once
#include <cstdint>
#include <vector>

#include "harness/judge/compare.h"
#include "harness/run/judging/huge.h"
#include "harness/run/judging/huge_case.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/memory/tiled_launch.h"

namespace tigon {

class SampledRows {
 public:
  // The first row, the last, those around the boundaries and random ones. All must outlive it.
  SampledRows(const HugeCase& huge, const HugeLimits& limits, const TiledLaunch& whole);

  const std::vector<int64_t>& rows() const { return rows_; }
  // Throws Stop where a tensor that is only read no longer holds what it was given.
  void require_inputs_unchanged() const;
  // The outputs that have rows, and those that are sums over rows.
  std::vector<Comparison> compare_rows() const;
  std::vector<Comparison> compare_sums() const;

 private:
  // Rows of the sample that a tensor has: its only one where it has no rows.
  std::vector<int64_t> rows_of(const TiledTensor& t) const;
  Problem small_problem() const;
  std::vector<Comparison> compare_outputs(bool row_wise) const;
  void name_worst_row(Comparison* comparison) const;

  const HugeCase& huge_;
  const TiledLaunch& whole_;
  std::vector<int64_t> rows_;
};

}  // namespace tigon
