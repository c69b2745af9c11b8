// SPDX-License-Identifier: Apache-2.0
// The table of models agrees with what their cards say, and the contracts say which of its sizes an
// axis has.
#include "harness/cli/options/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "harness/cli/options/selection.h"
#include "harness/tests/run_program.h"

namespace tigon::cli {
namespace {

using Sizes = std::vector<int64_t>;

// A wrong number anywhere in a row moves the count of parameters away from that of the model card.
TEST(Models, rows_give_the_parameters_that_model_cards_state) {
  for (const TrainedModel& m : trained_models()) {
    EXPECT_EQ(m.heads % m.kv_heads, 0) << m.name;
    EXPECT_LE(m.rotary, m.head_size) << m.name;
    EXPECT_FALSE(m.source.empty()) << m.name;
    if (m.expert_intermediate > 0) continue;  // experts are not in the formula
    const double billions = static_cast<double>(m.parameters()) / 1e9;
    EXPECT_NEAR(billions / m.billions, 1, m.mlp == "gelu" ? 0.015 : 0.004) << m.name;
  }
}

TEST(Models, sizes_are_picked_by_axis) {
  const TrainedModel& llama = trained_model("llama3-8b");
  const auto loss = axes_of(llama, *find_op("linear_cross_entropy"));
  EXPECT_EQ(loss.at("H"), Sizes{4096});
  EXPECT_EQ(loss.at("V"), Sizes{128256});
  EXPECT_EQ(loss.count("T"), 0u) << "tokens are not the model's";
  const auto rope = axes_of(llama, *find_op("rope"));
  EXPECT_EQ(rope.at("Q"), Sizes{32});
  EXPECT_EQ(rope.at("K"), Sizes{8});
  EXPECT_EQ(rope.at("D"), Sizes{128});
  EXPECT_EQ(axes_of(trained_model("deepseek-v3"), *find_op("swiglu")).at("F"),
            (Sizes{18432, 2048}));
  EXPECT_TRUE(axes_of(trained_model("gpt2"), *find_op("rope")).empty());
}

TEST(Models, a_selection_takes_its_ops_and_sizes_and_what_is_named_goes_first) {
  Selection selection;
  selection.model = "gemma2-9b";
  CheckRequest request = request_of(selection);
  EXPECT_EQ(request.ops, (std::vector<std::string>{"rms_norm", "add_rms_norm", "rope", "geglu",
                                                   "log_prob", "linear_log_prob", "linear_policy",
                                                   "divergence", "linear_divergence",
                                                   "cross_entropy", "linear_cross_entropy"}));
  EXPECT_EQ(request.axes.at("F"), Sizes{14336});
  selection.ops = {"swiglu"};
  selection.axes = {"F=128"};
  request = request_of(selection);
  EXPECT_EQ(request.axes.at("F"), Sizes{128});
  EXPECT_EQ(request.axes.size(), 1u);
}

std::string error_of(const Selection& selection) {
  try {
    request_of(selection);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Models, wrong_names_and_times_are_one_line) {
  Selection selection;
  selection.model = "llama3-8";
  EXPECT_NE(error_of(selection).find("'llama3-8b'"), std::string::npos) << error_of(selection);
  selection.model = "gpt2";
  selection.ops = {"rope"};
  EXPECT_EQ(error_of(selection), "--model gpt2: it has no rope");
  selection = {};
  for (const char* wrong : {"0", "-5s", "abc", "60x", "1e99h", "nan"}) {
    selection.budget = wrong;
    EXPECT_NE(error_of(selection).find("write a time"), std::string::npos) << wrong;
  }
  selection.budget = "2m";
  EXPECT_EQ(budget_of(selection), 120);
}

TEST(TigonProgram, maxlen_plans_both_sides_and_says_what_it_cannot) {
  const ProgramRun run = run_tigon({"maxlen", "--model", "llama3-8b", "--memory", "80GiB"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("planned, not measured"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("naive "), std::string::npos);
  EXPECT_NE(run.out.find("fused "), std::string::npos);
  const ProgramRun chosen =
      run_tigon({"maxlen", "--model", "llama3-8b", "--layers", "2", "--ranks", "4"});
  EXPECT_EQ(chosen.out.rfind("llama3-8b, 2 layers, bf16: 80GiB on each of 4 ranks, fsdp2;", 0), 0u)
      << chosen.out << chosen.err;
  for (const auto& [words, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--model", "gpt2"}, "RMSNorm"},
           {{"--model", "deepseek-v3"}, "experts"},
           {{"--model", "llama3-8b", "--memory", "many"}, "write a size"},
           {{"--model", "llama3-8b", "--memory", "80"}, "write a size"},
           {{"--model", "llama3-8b", "--memory", "80MiB"}, "do not fit even on 1024 ranks"},
           {{"--model", "llama3-8b", "--dtype", "f16"}, "bf16 and f32"},
           {{"--model", "llama3-8b", "--confirm"}, "one device"},
           {{"--model", "llama3-8b", "--layout", "ddp"}, "ddp"},
           {{"--model", "llama3-8b", "--ranks", "0"}, "out of range"},
           {{"--model", "llama3-8b", "--ranks", "3", "--layout", "tp"},
            "--layout tp: llama3-8b has 32 heads, which 3 ranks cannot share evenly"}}) {
    std::vector<std::string> all = {"maxlen"};
    all.insert(all.end(), words.begin(), words.end());
    const ProgramRun wrong = run_tigon(all);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_NE(wrong.err.find(says), std::string::npos) << wrong.err;
    EXPECT_EQ(wrong.out, "");
  }
}

TEST(TigonProgram, maxlen_plans_each_layout_of_ranks) {
  std::map<std::string, std::string> planned;
  for (const std::string layout : {"fsdp2", "zero3", "tp"}) {
    const ProgramRun run = run_tigon(
        {"maxlen", "--model", "llama3-8b", "--layers", "2", "--ranks", "8", "--layout", layout});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("on each of 8 ranks, " + layout + ";"), std::string::npos) << run.out;
    planned[layout] = run.out.substr(run.out.find("fused "));
  }
  EXPECT_NE(planned["fsdp2"], planned["zero3"]);
  EXPECT_NE(planned["tp"], planned["zero3"]);
}

TEST(TigonProgram, a_budget_ends_a_check_and_says_what_was_covered) {
  const TemporaryFolder folder;
  const ProgramRun run =
      run_tigon({"check", "--model", "qwen3-0.6b", "--op", "rope,linear_cross_entropy", "--budget",
                 "2s", "--out", (folder.path() / "run").string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("pairs of values"), std::string::npos) << run.out;
  if (default_executor() != "cuda") {
    EXPECT_NE(run.out.find("too large for the host executor"), std::string::npos) << run.out;
  }
}

}  // namespace
}  // namespace tigon::cli
