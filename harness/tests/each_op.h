// SPDX-License-Identifier: Apache-2.0
// Parameters of tests that run for every op of the build:
//   INSTANTIATE_TEST_SUITE_P(Ops, Suite, testing::ValuesIn(op_names()), name_of_parameter);
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

inline std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpSpec& op : all_ops()) names.push_back(op.name);
  return names;
}

inline std::string name_of_parameter(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace tigon
