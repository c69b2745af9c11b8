// SPDX-License-Identifier: Apache-2.0
// Which cells a bench measures, and that their tensors and times are right.
#include "harness/measure/sweep.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/measure/call_set.h"
#include "harness/measure/measure_cell.h"

namespace tigon {
namespace {

CheckRequest request_for(const std::string& op) {
  CheckRequest request;
  request.ops = {op};
  return request;
}

TEST(Sweep, quick_is_one_cell_per_pass_and_full_has_every_combination) {
  const OpSpec& op = *find_op("swiglu");
  EXPECT_EQ(sweep_cells(request_for("swiglu"), SweepSize::kQuick, true).size(), op.passes.size());
  const size_t shapes = op.axes[0].host_sweep.size() * op.axes[1].host_sweep.size();
  EXPECT_EQ(sweep_cells(request_for("swiglu"), SweepSize::kFull, true).size(),
            shapes * op.passes.size() * op.policies.size());
}

TEST(Sweep, of_a_training_step_is_the_pass_that_makes_gradients_too) {
  const auto passes_of = [](const char* op) {
    std::vector<std::string> passes;
    for (const Cell& cell : sweep_cells(request_for(op), SweepSize::kTraining, true))
      passes.push_back(cell.c.pass);
    return passes;
  };
  EXPECT_EQ(passes_of("cross_entropy"), std::vector<std::string>{"forward_backward"});
  EXPECT_EQ(passes_of("swiglu"), (std::vector<std::string>{"forward", "backward"}));
}

TEST(Sweep, a_number_of_ranks_takes_the_passes_over_ranks) {
  CheckRequest request;
  request.ranks = 2;
  const auto cells = sweep_cells(request, SweepSize::kQuick, true);
  EXPECT_FALSE(cells.empty());
  for (const Cell& cell : cells) EXPECT_EQ(cell.c.options.at(kRanksOption), "2") << case_id(cell.c);
  request.ops = {"swiglu"};
  EXPECT_TRUE(sweep_cells(request, SweepSize::kQuick, true).empty());
}

TEST(Sweep, values_that_are_given_replace_the_contracts) {
  CheckRequest request = request_for("swiglu");
  request.axes = {{"T", {5, 6}}, {"F", {7}}};
  request.passes = {"forward"};
  request.dtypes = {DType::kF32};
  const auto cells = sweep_cells(request, SweepSize::kDefault, true);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0].c.axes, (std::map<std::string, int64_t>{{"F", 7}, {"T", 5}}));
  EXPECT_GE(cells[0].implementations.size(), 2u) << "measured side by side";
}

TEST(Sweep, filters_and_shards_leave_whole_cases) {
  CheckRequest request = request_for("swiglu");
  request.filter = "naive";
  for (const Cell& cell : sweep_cells(request, SweepSize::kFull, true))
    EXPECT_EQ(cell.implementations, std::vector<std::string>{"naive"});
  const auto ids = [](const std::vector<Cell>& cells) {
    std::set<std::string> all;
    for (const Cell& cell : cells)
      for (const std::string& name : cell.implementations) {
        Case c = cell.c;
        c.impl = name;
        all.insert(case_id(c));
      }
    return all;
  };
  CheckRequest part = request_for("swiglu");
  part.shard_count = 2;
  std::set<std::string> together;
  size_t total = 0;
  for (part.shard_index = 0; part.shard_index < 2; ++part.shard_index) {
    const auto some = ids(sweep_cells(part, SweepSize::kFull, true));
    total += some.size();
    together.insert(some.begin(), some.end());
  }
  EXPECT_EQ(together, ids(sweep_cells(request_for("swiglu"), SweepSize::kFull, true)));
  EXPECT_EQ(total, together.size());
}

Case small_case(const std::string& op, const std::string& pass,
                std::map<std::string, int64_t> axes) {
  Case c;
  c.op = op;
  c.pass = pass;
  c.impl = "fused";
  c.dtype = DType::kBF16;
  c.axes = std::move(axes);
  c.inputs = find_op(op)->inputs.front().name;
  return c;
}

TEST(CallSet, knows_its_bytes_and_repeats_its_inputs) {
  const Case c = small_case("swiglu", "forward", {{"T", 3}, {"F", 16}});
  EXPECT_EQ(tensor_bytes(c).inputs, 2u * 3 * 16 * 2);
  EXPECT_EQ(tensor_bytes(c).outputs, 3u * 16 * 2);
  const auto outputs = [&](uint64_t seed) {
    CallSet set(c);
    set.fill_inputs(seed);
    set.poison_outputs();
    const Implementation* fused = find_implementation(find_op("swiglu")->passes[0], "fused");
    EXPECT_TRUE(fused->run(c.dtype, set.bound(), nullptr).ok());
    return set.fingerprints();
  };
  EXPECT_EQ(outputs(1), outputs(1));
  EXPECT_NE(outputs(1), outputs(2));
}

// Records of a cell by kind.
std::multimap<std::string, Json> measured(const Cell& cell) {
  std::multimap<std::string, Json> records;
  const StoppingRule rule{.warm_up = 1, .least = 3, .most = 5, .seconds = 0.01, .agreement = 0.5};
  measure_cell(cell, {}, rule,
               [&](const Json& line) { records.emplace(line["record"], line["fields"]); });
  return records;
}

TEST(MeasureCell, gives_memory_and_times_of_each_implementation) {
  if (default_executor() == "cuda") GTEST_SKIP() << "would use the GPU before others fork";
  const auto records =
      measured({small_case("rms_norm", "backward", {{"T", 4}, {"H", 64}}), {"fused", "naive"}});
  ASSERT_EQ(records.count("memory"), 2u);
  ASSERT_EQ(records.count("bench"), 2u);
  const Json& memory = records.find("memory")->second;
  EXPECT_EQ(memory["planned_bytes"].get<size_t>() - memory["workspace_bytes"].get<size_t>(),
            4u * 64 * 2 + 64 * 4);
  const Json& bench = records.find("bench")->second;
  EXPECT_EQ(bench["verdict"], "passed") << bench["reason"];
  EXPECT_EQ(bench["basis"], "wall");
  EXPECT_EQ(bench["samples_s"].size(), bench["n"].get<size_t>());
  EXPECT_GT(bench["median_s"], 0.0);
}

TEST(MeasureCell, what_does_not_fit_in_memory_is_oom_and_no_abort) {
  if (default_executor() == "cuda") GTEST_SKIP() << "would use the GPU before others fork";
  const auto records = measured(
      {small_case("swiglu", "forward", {{"T", 1 << 20}, {"F", 1 << 24}}), {"fused", "naive"}});
  ASSERT_EQ(records.count("bench"), 2u);
  EXPECT_EQ(records.find("bench")->second["verdict"], "oom");
}

}  // namespace
}  // namespace tigon
