// SPDX-License-Identifier: Apache-2.0
// Sampled rows against the oracle.
#include "harness/run/judging/sampled_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/convert.h"
#include "harness/run/memory/stop.h"

namespace tigon {

namespace {

std::vector<int64_t> choose_rows(const HugeCase& huge, const HugeLimits& limits,
                                 const TiledLaunch& whole) {
  std::vector<int64_t> rows = {0, huge.rows - 1};
  for (const TiledTensor& t : whole.tensors()) {
    if (!t.row_wise() || t.row_elements() == 0) continue;
    for (const int64_t boundary :
         {limits.boundary_elements,
          2 * limits.boundary_elements / static_cast<int64_t>(size_of(t.dtype()))})
      for (const int64_t row : {-1, 0, 1}) rows.push_back(boundary / t.row_elements() + row);
  }
  for (int i = 0; i < limits.random_rows; ++i)
    rows.push_back(static_cast<int64_t>(random_bits(huge.c.seed, static_cast<uint64_t>(i)) %
                                        static_cast<uint64_t>(huge.rows)));
  std::erase_if(rows, [&](int64_t r) { return r < 0 || r >= huge.rows; });
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// The rows, one after another, as values. read(row) has a row's packed bytes.
template <class Read>
std::vector<double> gather(const TiledTensor& t, const std::vector<int64_t>& rows, Read read) {
  std::vector<std::byte> packed;
  for (const int64_t row : rows) {
    const std::vector<std::byte> one = read(row);
    packed.insert(packed.end(), one.begin(), one.end());
  }
  return widen(packed.data(), packed.size() / size_of(t.dtype()), t.dtype());
}

}  // namespace

SampledRows::SampledRows(const HugeCase& huge, const HugeLimits& limits, const TiledLaunch& whole)
    : huge_(huge), whole_(whole), rows_(choose_rows(huge, limits, whole)) {}

std::vector<int64_t> SampledRows::rows_of(const TiledTensor& t) const {
  return t.row_wise() ? rows_ : std::vector<int64_t>{0};
}

void SampledRows::require_inputs_unchanged() const {
  for (const TiledTensor& t : whole_.tensors()) {
    if (t.is_output()) continue;
    for (const int64_t row : rows_of(t))
      if (huge_.input_rows(t, row, 1) != t.download(row, 1))
        throw Stop{Verdict::kInputModified,
                   fmt::format("changed input {} in row {}", t.info().name, row)};
  }
}

std::vector<Comparison> SampledRows::compare_rows() const { return compare_outputs(true); }
std::vector<Comparison> SampledRows::compare_sums() const { return compare_outputs(false); }

Problem SampledRows::small_problem() const {
  Case small = huge_.c;
  small.axes[huge_.row_axis] = static_cast<int64_t>(rows_.size());
  small.inputs = huge_.op->inputs.front().name;
  std::map<std::string, std::vector<double>> inputs;
  for (const TiledTensor& t : whole_.tensors())
    if (t.is_input())
      inputs[t.info().name] =
          gather(t, rows_of(t), [&](int64_t row) { return huge_.input_rows(t, row, 1); });
  return make_problem(small, inputs);
}

std::vector<Comparison> SampledRows::compare_outputs(bool row_wise) const {
  const Problem problem = small_problem();
  const auto expected = run_oracle(problem);
  std::vector<Comparison> comparisons;
  for (const CaseTensor& output : problem.tensors) {
    if (!output.is_output) continue;
    const std::string& name = output.info->name;
    const TiledTensor& t = *whole_.find(name);
    if (t.row_wise() != row_wise) continue;
    const auto got = gather(t, rows_of(t), [&](int64_t row) { return t.download(row, 1); });
    comparisons.push_back(
        compare(name, got, expected.at(name), output.shape, budget_of(problem, output)));
    if (row_wise) name_worst_row(&comparisons.back());
  }
  return comparisons;
}

// The worst element's row is one of the sample; says which of the whole it is.
void SampledRows::name_worst_row(Comparison* comparison) const {
  std::vector<int64_t>& index = comparison->result.worst_index;
  if (index.empty()) return;
  index[0] = rows_[static_cast<size_t>(index[0])];
  if (comparison->verdict != Verdict::kPassed)
    comparison->reason += fmt::format("; of {} sampled rows, the worst is row {} of {}",
                                      rows_.size(), index[0], huge_.rows);
}

}  // namespace tigon
