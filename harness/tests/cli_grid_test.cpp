// SPDX-License-Identifier: Apache-2.0
// The plane that `tigon bench --grid` measures.
#include "harness/cli/options/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/run/cases/case.h"
#include "harness/tests/program_records.h"
#include "harness/tests/run_program.h"
#include "harness/tests/temporary_folder.h"

namespace tigon::cli {
namespace {

TEST(Grid, has_the_widths_of_models_and_others_between_them) {
  const auto widths = grid_widths(*find_op("rms_norm"), 1);
  std::set<int64_t> sizes;
  for (const auto& width : widths) sizes.insert(width.at("H"));
  for (const int64_t named : {768, 5120, 7168, 16384}) EXPECT_EQ(sizes.count(named), 1u) << named;
  const auto is_odd = [](int64_t size) { return size % 2 == 1; };
  EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(), is_odd)) << "unaligned rows, too";
  EXPECT_GE(widths.size(), sizes.size());
  EXPECT_GE(*sizes.begin(), 760);
  EXPECT_LE(*sizes.rbegin(), 16384);
  EXPECT_NE(grid_widths(*find_op("rms_norm"), 2), widths) << "another seed, other widths";
  EXPECT_EQ(grid_widths(*find_op("rms_norm"), 1), widths);
}

TEST(Grid, a_head_is_rotated_in_pairs) {
  for (const auto& width : grid_widths(*find_op("rope"), 3)) EXPECT_EQ(width.at("D") % 2, 0);
}

TEST(Grid, passes_take_turns_and_rows_are_powers_of_two_and_their_neighbours) {
  CheckRequest request;
  request.ops = {"softmax"};
  const std::vector<Case> cases = grid_cases(request, 42, false);
  ASSERT_GT(cases.size(), 200u);
  EXPECT_EQ(cases[0].pass, "forward");
  EXPECT_EQ(cases[1].pass, "backward");
  std::set<std::string> ids;
  for (const Case& c : cases) {
    EXPECT_EQ(c.impl, "fused");
    EXPECT_EQ(c.dtype, DType::kBF16);
    EXPECT_TRUE(ids.insert(case_id(c)).second) << case_id(c);
    const int64_t rows = c.axes.at("T");
    EXPECT_LE(rows, 65536);
    const auto is_power = [](int64_t n) { return n > 0 && (n & (n - 1)) == 0; };
    EXPECT_TRUE(is_power(rows) || is_power(rows - 1) || is_power(rows + 1)) << rows;
  }
}

TEST(Grid, sizes_that_are_given_stand_in_its_place) {
  CheckRequest request;
  request.ops = {"swiglu"};
  request.passes = {"forward"};
  request.axes = {{"T", {8}}};
  for (const Case& c : grid_cases(request, 42, true)) EXPECT_EQ(c.axes.at("T"), 8);
}

TEST(Grid, is_benched_within_the_time) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "grid.jsonl").string();
  // A GPU that other tests use, too, gives a process its context late.
  const std::string budget = on_gpu() ? "20s" : "2s";
  const ProgramRun run = run_tigon({"bench", "--grid", "--op", "rms_norm", "--pass", "forward",
                                    "-a", "T=[1,8]", "--budget", budget, "--json", file});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("cells measured within the budget of " + budget), std::string::npos)
      << run.out;
  std::set<int64_t> widths;
  for (const Json& line : records_in(file))
    if (line["record"] == "bench") widths.insert(line["axes"]["H"].get<int64_t>());
  EXPECT_GE(widths.size(), 2u);
  EXPECT_EQ(run_tigon({"bench", "--grid", "--full"}).exit_code, 2);
}

}  // namespace
}  // namespace tigon::cli
