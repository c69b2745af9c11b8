// SPDX-License-Identifier: Apache-2.0
// Huge cases looked up.
#include "harness/run/judging/huge_case.h"

#include <algorithm>

#include "harness/judge/verdict.h"

namespace tigon {

HugeCase::HugeCase(const Case& huge) : c(huge), op(find_op(huge.op)) {
  pass = op ? find_pass(*op, c.pass) : nullptr;
  implementation = pass ? find_implementation(*pass, c.impl) : nullptr;
  if (!implementation) throw UsageError("no such op, pass or implementation: " + case_id(c));
  row_axis = op->axes.front().axis.symbol;
  rows = c.axes.at(row_axis);
}

std::vector<std::byte> HugeCase::input_rows(const TiledTensor& t, int64_t first,
                                            int64_t count) const {
  const auto whole = saved.find(t.info().name);
  if (whole == saved.end()) return t.planned(first, count);
  const auto begin = whole->second.begin() + first * row_bytes(t);
  return {begin, begin + count * row_bytes(t)};
}

int64_t row_bytes(const TiledTensor& t) {
  return std::max<int64_t>(1, t.row_elements() * static_cast<int64_t>(size_of(t.dtype())));
}

}  // namespace tigon
