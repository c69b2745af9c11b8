// SPDX-License-Identifier: Apache-2.0
// Every two values meet, in far fewer rows than the product has.
#include "harness/run/cases/covering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace tigon {
namespace {

size_t pairs_of(const std::vector<size_t>& sizes) {
  size_t pairs = 0;
  for (size_t a = 0; a < sizes.size(); ++a)
    for (size_t b = a + 1; b < sizes.size(); ++b) pairs += sizes[a] * sizes[b];
  return pairs;
}

TEST(Covering, every_pair_meets_in_few_rows) {
  for (const std::vector<size_t>& sizes :
       {std::vector<size_t>{3, 3, 3, 3}, {2, 2, 2, 2, 2, 2, 2, 2}, {11, 7, 12, 3, 3}, {1, 5}}) {
    const std::vector<Row> rows = pairwise_rows(sizes);
    const std::vector<size_t> gains = gains_of(rows);
    EXPECT_EQ(std::accumulate(gains.begin(), gains.end(), size_t{0}), pairs_of(sizes));
    for (const Row& row : rows)
      for (size_t f = 0; f < sizes.size(); ++f) EXPECT_LT(row[f], sizes[f]);
    std::vector<size_t> sorted = sizes;
    std::sort(sorted.rbegin(), sorted.rend());
    EXPECT_LE(rows.size(), 2 * sorted[0] * sorted[1]) << "the two longest lists need their product";
  }
  EXPECT_EQ(pairwise_rows({4}).size(), 4u);
  EXPECT_TRUE(pairwise_rows({4, 0}).empty());
}

TEST(Covering, cases_of_an_op_are_of_its_contract_and_each_once) {
  CheckRequest request;
  request.ops = {"rope"};
  request.axes = {{"D", {64, 128}}};
  const Covering covering = covering_cases(request);
  ASSERT_FALSE(covering.cases.empty());
  EXPECT_EQ(std::accumulate(covering.gains.begin(), covering.gains.end(), size_t{0}),
            covering.pairs);
  std::set<std::string> ids;
  for (const Case& c : covering.cases) {
    const std::string id = case_id(c);
    EXPECT_TRUE(ids.insert(id).second) << id;
    EXPECT_EQ(case_id(parse_case(id)), id);
    EXPECT_TRUE(c.axes.at("D") == 64 || c.axes.at("D") == 128) << id;
  }
}

}  // namespace
}  // namespace tigon
