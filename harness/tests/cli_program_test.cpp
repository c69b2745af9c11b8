// SPDX-License-Identifier: Apache-2.0
// The built program: bad input is one line with its exit code, runs leave valid records.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "harness/json/json.h"
#include "harness/run/check.h"
#include "harness/tests/program_records.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

std::set<std::string> checked_cases(const std::filesystem::path& path) {
  std::set<std::string> ids;
  for (const auto& line : records_in(path))
    if (line["record"] == "check")
      ids.insert(line["case_id"].get<std::string>() + line["executor"].get<std::string>());
  return ids;
}

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

// A check of a few tiny cases into `folder`.
std::vector<std::string> small_check(const std::filesystem::path& folder) {
  return {"check", "--op",   "swiglu", "--pass",  "forward", "--dtype",
          "bf16",  "--impl", "fused",  "--quick", "--out",   folder.string()};
}

struct BadCommand {
  std::vector<std::string> arguments;
  int exit_code;
  std::string says;
};

TEST(TigonProgram, bad_input_is_one_line_on_stderr_with_its_exit_code) {
  const BadCommand kBad[] = {
      {{}, 2, "--help"},
      {{"chekc"}, 2, "did you mean 'check'?"},
      {{"check", "--opp", "rope"}, 2, "did you mean '--op'?"},
      {{"check", "--op", "nosuch"}, 2, "there are: rms_norm, add_rms_norm"},
      {{"check", "--op", "rmsnorm"}, 2, "did you mean 'rms_norm'?"},
      {{"check", "--pass", "sideways"}, 2, "no pass 'sideways'"},
      {{"check", "--impl", "magic"}, 2, "no implementation 'magic'"},
      {{"check", "--dtype", "f31"}, 2, "no dtype 'f31'"},
      {{"check", "--op", "swiglu", "-a", "Q=5"}, 2, "its axes are T, F"},
      {{"check", "-a", "T=-5"}, 2, "a size is 1 or more"},
      {{"check", "-a", "T=[]"}, 2, "no value is given"},
      {{"check", "--shard", "4/4"}, 2, "does not exist"},
      {{"check", "--timeout", "-1"}, 2, "0 or more"},
      {{"check", "--seed", "-1"}, 2, "--seed: -1 is out of range;"},
      {{"check", "--executor", "gpu"}, 2, "this build has"},
      {{"check", "--filter", "["}, 2, "not a regular expression"},
      {{"check", "--exclude", "["}, 2, "not a regular expression"},
      {{"check", "--case", "nonsense"}, 2, "nonsense"},
      {{"check", "--gtest_nosuch=1"}, 2, "no flag '--gtest_nosuch'"},
      {{"bench", "--op", "nosuch"}, 2, "no op 'nosuch'"},
      {{"describe", "nosuch"}, 2, "no op 'nosuch'"},
      {{"converge", "--config", "huge"}, 2, "no config 'huge'"},
      {{"converge", "--steps", "-3"}, 2, "--steps: must be positive, not -3"},
      {{"converge", "--data", "/no/such/file"}, 4, "no such file or folder"},
      {{"converge", "--experiment", "next_action", "--data", "/etc/passwd"},
       2,
       "known are act-mooc"},
      {{"report", "/no/such/folder"}, 4, "no such results folder"},
      {{"run", "--stages", "chck"}, 2, "did you mean 'check'?"},
      {{"run", "--tag", "novalue"}, 2, "name=value"},
      {{"check", "--op", "rope", "--json", "/dev/full"}, 5, "No space left on device"},
  };
  for (const BadCommand& bad : kBad) {
    const ProgramRun run = run_tigon(bad.arguments);
    EXPECT_EQ(run.exit_code, bad.exit_code) << run.err;
    EXPECT_TRUE(is_one_line(run.err)) << run.err;
    EXPECT_EQ(run.err.rfind("tigon: ", 0), 0u) << run.err;
    EXPECT_NE(run.err.find(bad.says), std::string::npos) << run.err;
  }
}

TEST(TigonProgram, every_command_has_help_with_an_example) {
  for (const char* name :
       {"list", "describe", "check", "bench", "converge", "report", "run", "doctor"}) {
    const ProgramRun run = run_tigon({name, "--help"});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_NE(run.out.find(std::string("./tigon ") + name), std::string::npos) << name;
  }
}

TEST(TigonProgram, every_form_of_the_page_of_contracts_has_every_op) {
  const ProgramRun json = run_tigon({"describe", "--all", "--json"});
  const ProgramRun html = run_tigon({"describe", "--all", "--html"});
  EXPECT_EQ(run_tigon({"describe"}).exit_code, 2);
  EXPECT_EQ(run_tigon({"describe", "rope", "--json"}).exit_code, 2);
  const auto ops = Json::parse(json.out).at("ops");
  ASSERT_EQ(ops.size(), all_ops().size());
  for (size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(ops[i].at("name"), all_ops()[i].name);
    EXPECT_EQ(ops[i].at("passes").size(), all_ops()[i].passes.size());
    EXPECT_NE(html.out.find("<h2>" + all_ops()[i].name + "</h2>"), std::string::npos);
  }
}

TEST(TigonProgram, describe_call_says_of_every_option_its_default_or_its_choices) {
  const ProgramRun run = run_tigon({"describe", "linear_policy", "--call"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* line :
       {"  double ignore_index;     /* -100 where it is left out */\n",
        "  double clip_low;         /* 0.2 where it is left out */\n",
        "  double logits_bytes;     /* 1073741824 where it is left out */\n",
        "  double reduction;        /* mean, sum, none */\n", "  a.logits_bytes = 1073741824;\n"})
    EXPECT_NE(run.out.find(line), std::string::npos) << line;
  EXPECT_EQ(run.out.find("/*  */"), std::string::npos);
}

TEST(TigonProgram, list_and_describe_show_every_op) {
  const ProgramRun list = run_tigon({"list"});
  EXPECT_EQ(list.exit_code, 0);
  for (const OpSpec& op : all_ops()) {
    EXPECT_NE(list.out.find(op.name), std::string::npos);
    EXPECT_EQ(run_tigon({"describe", op.name, "--shapes"}).exit_code, 0);
    const ProgramRun described = run_tigon({"describe", op.name});
    EXPECT_EQ(described.exit_code, 0);
    EXPECT_NE(described.out.find(op.summary), std::string::npos);
  }
}

TEST(TigonProgram, the_models_are_the_same_as_json) {
  const ProgramRun table = run_tigon({"list", "models"});
  const auto models = Json::parse(run_tigon({"list", "models", "--json"}).out).at("models");
  EXPECT_GT(models.size(), 20u);
  EXPECT_EQ(static_cast<size_t>(std::count(table.out.begin(), table.out.end(), '\n')),
            models.size() + 2);
  for (size_t i = 0; i < models.size(); ++i)
    EXPECT_NE(table.out.find("\n" + models[i].at("name").get<std::string>() + " "),
              std::string::npos);
}

TEST(TigonProgram, flags_of_googletest_choose_in_one_executor_and_listing_runs_nothing) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "run").string();
  const std::vector<std::string> words = {"check", "softmax", "--quick", "--dtype",
                                          "f32",   "--out",   out};
  const auto with = [&](const char* flag) {
    std::vector<std::string> all = words;
    all.push_back(flag);
    return run_tigon(all);
  };
  const ProgramRun list = with("--gtest_list_tests");
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_NE(list.out.find("softmax.forward.fused."), std::string::npos) << list.out;
  EXPECT_EQ(list.out.find("passed"), std::string::npos) << list.out;
  EXPECT_FALSE(std::filesystem::exists(out));
  const ProgramRun some = with("--gtest_filter=softmax.forward.fused.*inputs=normal,seed=42");
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_EQ(some.out.find("[checked]"), std::string::npos) << some.out;
  EXPECT_EQ(some.out.find("backward"), std::string::npos) << some.out;
  EXPECT_NE(some.out.find("softmax forward fused ["), std::string::npos) << some.out;
  EXPECT_EQ(some.err.find("--executor checked") != std::string::npos, !on_gpu()) << some.err;
}

TEST(TigonProgram, a_flag_of_googletest_that_chooses_no_case_leaves_every_executor) {
  const TemporaryFolder folder;
  const std::filesystem::path plain = folder.path() / "plain";
  ASSERT_EQ(run_tigon(small_check(plain)).exit_code, 0);
  const auto expected = checked_cases(plain / "records.jsonl");
  for (const char* flag : {"--gtest_color=no", "--gtest_random_seed=3", "--gtest_shuffle",
                           "--gtest_fail_fast", "--gtest_output=xml:"}) {
    const std::filesystem::path out = folder.path() / std::string(flag, 13);
    auto words = small_check(out);
    const bool output = std::string(flag).ends_with(":");
    words.push_back(flag + (output ? (folder.path() / "out.xml").string() : ""));
    const ProgramRun run = run_tigon(words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(checked_cases(out / "records.jsonl"), expected) << flag;
    // Of two executors the first alone is in it.
    EXPECT_EQ(run.err.find("--junit") != std::string::npos, output && !on_gpu()) << run.err;
  }
}

TEST(TigonProgram, a_folder_of_another_run_is_refused_before_cases_are_chosen) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "records.jsonl") << "{}\n";
  for (const char* command : {"check", "mutants"}) {
    const ProgramRun run = run_tigon({command, "--out", folder.path().string(), "--op", "no_such"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_NE(run.err.find("holds another run"), std::string::npos) << run.err;
  }
}

TEST(TigonProgram, records_go_to_stdout_and_the_text_to_stderr) {
  for (const char* command : {"check", "bench"}) {
    const ProgramRun run = run_tigon({command, "rope", "--quick", "--dtype", "f32", "--json", "-"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::istringstream lines(run.out);
    std::string line, kind;
    while (std::getline(lines, line)) kind = Json::parse(line).at("record");
    EXPECT_EQ(kind, "end");
    EXPECT_NE(run.err.find(" passed, 0 failed"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("records: standard output\n"), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find("/proc/"), std::string::npos) << run.err;
  }
}

TEST(TigonProgram, nobody_reads_the_records_on_stdout) {
  const std::string command = fmt::format(
      "bash -c 'set -o pipefail; timeout 60 {} check softmax --quick --json - 2>/dev/null | head "
      "-c 9'",
      tigon_program().string());
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), kExitInfrastructure);
}

TEST(TigonProgram, run_shows_a_line_for_each_stage_and_keeps_the_rest_in_a_file) {
  const TemporaryFolder folder;
  std::vector<std::string> words = {
      "run", "--op", "rope", "--stages", "check,bench", "--out", (folder.path() / "run").string()};
  const ProgramRun run = run_tigon(words);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LE(std::count(run.out.begin(), run.out.end(), '\n'), 8) << run.out;
  EXPECT_NE(run.out.find("ok     check "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("ok     bench "), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("rope forward"), std::string::npos) << run.out;
  std::ifstream log(folder.path() / "run" / "run.log");
  const std::string kept{std::istreambuf_iterator<char>(log), {}};
  EXPECT_NE(kept.find("rope forward fused"), std::string::npos) << kept;
  words.back() = (folder.path() / "again").string();
  words.push_back("--verbose");
  EXPECT_NE(run_tigon(words).out.find("rope forward fused"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "again" / "run.log"));
}

TEST(TigonProgram, a_check_leaves_valid_records_and_counts_in_its_last_line) {
  const TemporaryFolder folder;
  auto arguments = small_check(folder.path());
  arguments.insert(arguments.end(), {"--junit", (folder.path() / "junit.xml").string()});
  const ProgramRun run = run_tigon(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  EXPECT_EQ(lines.front()["record"], "run");
  EXPECT_EQ(lines.back()["record"], "end");
  int passed = 0, skipped = 0;
  for (const auto& line : lines) {
    if (line["record"] != "check") continue;
    const bool stream = default_executor() != "cuda" &&  // the host has none
                        line["case_id"].get<std::string>().find("stream") != std::string::npos;
    EXPECT_EQ(line["verdict"], stream ? "unsupported" : "passed") << line;
    ++(stream ? skipped : passed);
  }
  EXPECT_GT(passed, 0);
  EXPECT_EQ(skipped > 0, default_executor() != "cuda");
  EXPECT_EQ(lines.back()["passed"], passed);
  EXPECT_EQ(lines.back()["skipped"], skipped);
  EXPECT_EQ(run.last_line(), fmt::format("{} passed, 0 failed, {} skipped", passed, skipped));
  EXPECT_EQ(run.out.find('\x1b'), std::string::npos) << "no colours but on a terminal";
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "junit.xml"));
}

// A host build lacks cudnn, and one for GPUs that did not find its headers.
TEST(TigonProgram, what_it_lacks_is_said_where_it_is_asked_for) {
  const Implementation& cudnn = *find_implementation(find_op("softmax")->passes.front(), "cudnn");
  if (cudnn.absent.empty()) GTEST_SKIP() << "this program has all";
  const TemporaryFolder folder;
  ProgramRun run = run_tigon({"check", "softmax", "--impl", "cudnn", "--quick", "--dtype", "f32",
                              "--out", (folder.path() / "check").string()});
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_NE(run.out.find("skipped; " + cudnn.absent), std::string::npos) << run.out;
  run = run_tigon({"bench", "softmax", "--impl", "cudnn", "--quick", "--out",
                   (folder.path() / "bench").string()});
  EXPECT_EQ(run.exit_code, 4) << run.out << run.err;
  EXPECT_NE(run.out.find("unsupported: " + cudnn.absent), std::string::npos) << run.out;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"doctor"}, {"describe", "softmax"}})
    EXPECT_NE(run_tigon(command).out.find(cudnn.absent), std::string::npos) << command.front();
}

TEST(TigonProgram, colours_are_forced_by_clicolor_force_and_forbidden_by_no_color) {
  const TemporaryFolder folder;
  EXPECT_NE(run_tigon(small_check(folder.path() / "a"), {"CLICOLOR_FORCE=1"}).out.find('\x1b'),
            std::string::npos);
  EXPECT_EQ(run_tigon(small_check(folder.path() / "b"), {"CLICOLOR_FORCE=1", "NO_COLOR=1"})
                .out.find('\x1b'),
            std::string::npos);
}

TEST(TigonProgram, the_repro_line_of_a_record_selects_that_case) {
  const TemporaryFolder folder;
  run_tigon(small_check(folder.path() / "all"));
  const std::string id = records_in(folder.path() / "all" / "records.jsonl").at(1)["case_id"];
  const ProgramRun run =
      run_tigon({"check", "--case", id, "--out", (folder.path() / "one").string()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(records_in(folder.path() / "one" / "records.jsonl").at(1)["case_id"], id);
}

TEST(TigonProgram, shards_are_disjoint_and_whole_by_option_and_by_environment) {
  const TemporaryFolder folder;
  run_tigon(small_check(folder.path() / "all"));
  const auto all = checked_cases(folder.path() / "all" / "records.jsonl");
  ASSERT_GT(all.size(), 4u);
  std::set<std::string> together;
  size_t total = 0;
  const std::vector<std::string> slurm = {"SLURM_ARRAY_TASK_ID=7", "SLURM_ARRAY_TASK_COUNT=3",
                                          "SLURM_ARRAY_TASK_MIN=3", "SLURM_ARRAY_TASK_STEP=2",
                                          "SLURM_ARRAY_JOB_ID=99"};
  for (const std::string index : {"0", "1", "2"}) {
    auto arguments = small_check(folder.path() / index);
    const auto status_file = folder.path() / ("status" + index);
    ProgramRun run;
    if (index == "0") {
      arguments.insert(arguments.end(), {"--shard", "0/3"});
      run = run_tigon(arguments, slurm);  // the option wins
    } else if (index == "1") {
      run = run_tigon(arguments, {"GTEST_TOTAL_SHARDS=3", "GTEST_SHARD_INDEX=1",
                                  "GTEST_SHARD_STATUS_FILE=" + status_file.string()});
      EXPECT_TRUE(std::filesystem::exists(status_file));
    } else {
      run = run_tigon(arguments, slurm);
    }
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out.rfind("shard " + index + "/3 (", 0), 0u) << run.out;
    const auto records = records_in(folder.path() / index / "records.jsonl");
    EXPECT_EQ(schema_violation(records), "");
    EXPECT_EQ(records.at(0)["shard"]["index"], std::stoi(index));
    EXPECT_EQ(records.at(0)["shard"]["count"], 3);
    const auto part = checked_cases(folder.path() / index / "records.jsonl");
    total += part.size();
    together.insert(part.begin(), part.end());
  }
  EXPECT_EQ(together, all);
  EXPECT_EQ(total, all.size());
}

TEST(TigonProgram, a_place_in_an_array_that_does_not_exist_is_named) {
  const TemporaryFolder folder;
  const std::pair<std::vector<std::string>, std::string> kBad[] = {
      {{"SLURM_ARRAY_TASK_ID=1"}, "must be set together"},
      {{"SLURM_ARRAY_TASK_ID=x", "SLURM_ARRAY_TASK_COUNT=4"}, "not a whole number"},
      {{"SLURM_ARRAY_TASK_ID=4", "SLURM_ARRAY_TASK_COUNT=4"}, "does not exist"},
      {{"SLURM_ARRAY_TASK_ID=4", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_STEP=3"},
       "multiple of the step"}};
  for (const auto& [environment, says] : kBad) {
    const ProgramRun run = run_tigon(small_check(folder.path()), environment);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_TRUE(is_one_line(run.err)) << run.err;
    EXPECT_NE(run.err.find(says), std::string::npos) << run.err;
  }
}

TEST(TigonProgram, nothing_selected_is_exit_code_4) {
  const TemporaryFolder folder;
  auto arguments = small_check(folder.path());
  arguments.insert(arguments.end(), {"--filter", "no_such_case"});
  const ProgramRun run = run_tigon(arguments);
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_EQ(run.last_line(), "0 passed, 0 failed, 0 skipped");
}

TEST(TigonProgram, ctrl_c_keeps_what_was_done_and_exits_with_130) {
  const TemporaryFolder folder;
  const auto records = folder.path() / "records.jsonl";
  const ProgramRun run =
      run_tigon({"check", "--jobs", "1", "--out", folder.path().string()}, {}, {records, 20000});
  EXPECT_EQ(run.exit_code, 130) << run.err;
  const Lines lines = records_in(records);
  EXPECT_EQ(schema_violation(lines), "");
  EXPECT_GT(lines.size(), 5u);
  EXPECT_EQ(lines.back()["record"], "end");
  EXPECT_EQ(lines.back()["interrupted"], true);
  EXPECT_TRUE(
      std::regex_match(run.last_line(), std::regex("[0-9]+ passed, 0 failed, [0-9]+ skipped")));
}

TEST(TigonProgram, output_that_cannot_be_printed_is_exit_code_5) {
  EXPECT_EQ(run_tigon({"list"}, {}, {}, "/dev/full").exit_code, 5);
}

TEST(TigonProgram, a_bench_leaves_valid_records) {
  const TemporaryFolder folder;
  const ProgramRun run = run_tigon({"bench", "--op", "swiglu", "--quick", "--min-time", "0.02",
                                    "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  const auto kinds = kinds_of(lines);
  for (const char* kind : {"run", "bench", "memory", "end"}) EXPECT_TRUE(kinds.count(kind)) << kind;
  EXPECT_TRUE(kinds.count(default_executor() == "cuda" ? "ceiling" : "trace"));
}

TEST(TigonProgram, a_bench_takes_as_many_samples_as_asked) {
  const TemporaryFolder folder;
  const ProgramRun run = run_tigon(
      {"bench", "--case", "rms_norm/forward/fused/bf16/T=4,H=64,inputs=normal,seed=42", "--samples",
       "3", "--basis", "graph", "--no-ceilings", "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  for (const auto& line : records_in(folder.path() / "records.jsonl")) {
    EXPECT_NE(line["record"], "ceiling");
    if (line["record"] != "bench") continue;
    EXPECT_EQ(line["n"], 3);
    EXPECT_EQ(line["basis"], default_executor() == "cuda" ? "graph" : "wall");
  }
}

TEST(TigonProgram, a_bench_says_what_the_contract_calls_its_axes) {
  const TemporaryFolder folder;
  const ProgramRun run =
      run_tigon({"bench", "--case", "softmax/forward/fused/bf16/T=4,V=64,inputs=normal,seed=42",
                 "--samples", "3", "--no-ceilings", "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  std::set<std::string> kinds;
  for (const auto& line : lines) {
    if (!line.contains("axes") || line["record"] == "trace") continue;
    EXPECT_EQ(line["axis_meanings"], Json({{"T", "rows"}, {"V", "columns"}}));
    kinds.insert(line["record"]);
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"bench", "memory"}));
}

TEST(TigonProgram, a_trace_counts_at_least_the_least_bytes) {
  if (default_executor() == "cuda") GTEST_SKIP() << "counted by the host executor";
  const TemporaryFolder folder;
  const ProgramRun run =
      run_tigon({"check", "--trace", "swiglu", "--dtype", "bf16", "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  ASSERT_EQ(lines.at(1)["record"], "trace");
  EXPECT_GE(lines[1]["traffic_ratio"], 1.0);
  EXPECT_LT(lines[1]["traffic_ratio"], 1.1) << "swiglu reads and writes each tensor once";
}

}  // namespace
}  // namespace tigon
