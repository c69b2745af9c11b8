// SPDX-License-Identifier: Apache-2.0
// tigon check: every implementation against the oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/commands/check_budget.h"
#include "harness/cli/commands/check_lines.h"
#include "harness/cli/options/case_pattern.h"
#include "harness/cli/stages.h"
#include "harness/cli/suite.h"
#include "harness/cli/text/coverage_table.h"
#include "harness/cli/text/failure.h"
#include "harness/cli/text/gpu_only.h"
#include "harness/cli/text/headroom_table.h"
#include "harness/cli/text/left_out.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/cases/kinds.h"
#include "harness/run/cases/known_names.h"
#include "harness/run/executor.h"
#include "harness/run/judging/coverage.h"
#include "harness/run/judging/launches.h"
#include "harness/run/judging/properties.h"
#include "harness/run/memory/headroom.h"
#include "kernels/device/device_limits.h"

namespace tigon::cli {
namespace {

JUnitCase junit_case(const CheckResult& r) {
  const std::string id = case_id(r.c);
  JUnitCase c;
  c.suite = r.c.op;
  c.classname = r.c.op + "." + r.c.impl;
  c.name = id.substr(r.c.op.size() + 1) + " [" + r.executor + "]";
  c.seconds = r.seconds;
  c.verdict = name_of(r.verdict);
  c.reason = r.reason;
  c.details = r.reason + "\nrepro: " + r.repro;
  if (is_skip(r.verdict)) c.outcome = JUnitCase::kSkipped;
  if (is_failure(r.verdict))
    c.outcome = exit_code_of(r.verdict) == kExitIncorrect ? JUnitCase::kFailure : JUnitCase::kError;
  return c;
}

constexpr int kMostAlike = 3;  // failures with the same reason that are shown; all are recorded

// Prints failures as they come and one line for each op, pass and implementation.
class CheckPrinter {
 public:
  // `mixed`: the cases come in turns, so there is no line for a group.
  CheckPrinter(Progress* progress, bool verbose, bool mixed)
      : progress_(progress), verbose_(verbose), mixed_(mixed) {}
  ~CheckPrinter() { end_group(); }

  // `diagnosis`: of a failure that was looked at again.
  void add(const CheckResult& r, const Diagnosis* diagnosis = nullptr) {
    const std::string group = fmt::format("{} {} {} [{}]", r.c.op, r.c.pass, r.c.impl, r.executor);
    if (group != group_) end_group();
    group_ = group;
    tally_.add(r.verdict);
    if (is_skip(r.verdict))
      ++skips_[r.reason];
    else
      cases_.push_back({r.c, is_failure(r.verdict)});
    for (const OutputResult& output : r.outputs)
      if (output.error_over_budget > worst_ || std::isnan(worst_))
        worst_ = output.error_over_budget;
    const std::string id = case_id(r.c);
    if (is_failure(r.verdict) && diagnosis)
      progress_->line(failure_lines(r, *diagnosis));
    else if (is_failure(r.verdict) && (mixed_ || alike_[r.reason]++ < kMostAlike))
      progress_->line(failure_line(r));
    else if (verbose_)
      progress_->line(
          fmt::format("{} {}{}{}", name_of(r.verdict), id, r.reason.empty() ? "" : ": ", r.reason));
    progress_->step(id);
  }

 private:
  void end_group() {
    if (group_.empty() || mixed_) return;
    const Color color = tally_.failed() > 0   ? Color::kRed
                        : tally_.passed() > 0 ? Color::kGreen
                                              : Color::kYellow;
    progress_->line(fmt::format("{:<60} {}; {}", group_, colored(tally_.line(), color), outcome()));
    for (const auto& [reason, times] : alike_)
      if (times > kMostAlike)
        progress_->line(fmt::format("  {} more fail alike: {}", times - kMostAlike, reason));
    if (const std::string pattern = case_pattern(cases_); !pattern.empty())
      progress_->line("  what fails: " + pattern);
    group_.clear();
    tally_ = {};
    cases_.clear();
    alike_.clear();
    skips_.clear();
    worst_ = 0;
  }

  // Of a group that was skipped as a whole, why.
  std::string outcome() const {
    if (tally_.passed() + tally_.failed() > 0)
      return fmt::format("worst error {:.2g} of the budget", worst_);
    const auto most = std::max_element(skips_.begin(), skips_.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    const size_t others = skips_.size() - 1;
    return most->first + (others > 0 ? fmt::format(" (and {} other reasons)", others) : "");
  }

  Progress* progress_;
  bool verbose_, mixed_;
  std::string group_;
  Tally tally_;
  std::vector<JudgedCase> cases_;     // of the group
  std::map<std::string, int> alike_;  // failures of the group by reason
  std::map<std::string, int> skips_;  // of the group by reason
  double worst_ = 0;
};

constexpr double kLargeTimeout = 300;  // seconds
constexpr double kMostDiagnoses = 4;   // times --shrink

Tier tier_of(const CheckOptions& options) {
  static const std::map<std::string, Tier> kTiers = {{"tiny", Tier::kTiny},
                                                     {"check", Tier::kCheck},
                                                     {"sweep", Tier::kSweep},
                                                     {"huge", Tier::kHuge}};
  if (options.tier.empty()) return options.quick ? Tier::kTiny : Tier::kCheck;
  require_known("tier", {options.tier}, {"tiny", "check", "sweep", "huge"});
  return kTiers.at(options.tier);
}

// Do GoogleTest's flags choose among the cases?
bool gtest_chooses() {
  return testing::GTEST_FLAG(list_tests) || testing::GTEST_FLAG(filter) != "*";
}

// What GoogleTest, which runs once, does not see of more than one suite.
void say_what_gtest_leaves_out(const CheckOptions& options, size_t suites) {
  const bool all = default_executor() != "fast" || !options.executor.empty();
  if (gtest_chooses() && !all)
    print_error("--gtest_filter: of the fast executor's cases; --executor checked has the others");
  if (!testing::GTEST_FLAG(output).empty() && suites > 1)
    print_error("--gtest_output: has the fast executor's cases; --junit FILE has all");
}

// The requests that the options stand for, each with its cases.
std::vector<CheckRequest> requests_of(const CheckOptions& options) {
  CheckRequest request = request_of(options.select);
  request.properties = options.properties;
  request.save_folder = options.save;
  request.plugin = options.plugin.path;
  request.jobs = options.jobs;
  request.tier = tier_of(options);
  request.quick = options.quick;
  if (request.tier == Tier::kSweep || request.tier == Tier::kHuge) {
    // One case may take tens of gigabytes and minutes.
    if (request.jobs == 0) request.jobs = 1;
    if (request.timeout_s == 0) request.timeout_s = kLargeTimeout;
  }
  request.executor = options.executor;
  if (!options.executor.empty() && options.executor != default_executor() &&
      !(options.executor == "checked" && default_executor() == "fast"))
    throw UsageError(fmt::format("--executor {}: this build has {}", options.executor,
                                 default_executor() == "cuda" ? "cuda" : "fast and checked"));
  if (options.executor == "checked") request.tier = Tier::kTiny;
  if (gtest_chooses() && request.executor.empty())
    request.executor = default_executor();  // GoogleTest runs once: it chooses in one suite
  return suite_of(request, options.select, [&](const CheckRequest& r) {
    const bool covering = budget_of(options.select) > 0 && r.cases.empty();
    std::vector<Case> cases = covering ? budgeted_cases(r) : select_cases(r);
    if (options.part) cases = part_of_run(std::move(cases));
    if (!options.plugin.path.empty()) keep_seeds_secret(options.plugin, r, &cases);
    return cases;
  });
}

// Takes the cases that are sealed in the run that is continued out of a request; their results.
std::vector<CheckResult> take_sealed(const Session& session, CheckRequest* request) {
  std::vector<CheckResult> sealed;
  if (session.resumed() == nullptr) return sealed;
  const std::string executor = request->executor.empty() ? default_executor() : request->executor;
  std::erase_if(request->cases, [&](const Case& c) {
    const Json* record =
        session.resumed()->find("check", {{"case_key", case_key(c)}, {"executor", executor}});
    auto result = record == nullptr ? std::nullopt : check_of_record(*record);
    if (result) sealed.push_back(std::move(*result));
    return result.has_value();
  });
  return sealed;
}

// Throws RecordError when no case can be saved in the folder.
void require_writable(const std::filesystem::path& folder) {
  constexpr size_t kProbe = size_t{1} << 16;  // bytes; a disk that is nearly full takes a few
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path file = folder / ".probe";
  std::ofstream probe(file, std::ios::binary);
  probe << std::string(kProbe, '\0');
  probe.close();
  const bool written = static_cast<bool>(probe);
  std::filesystem::remove(file, error);
  if (!written)
    throw RecordError(
        fmt::format("--save: cannot write into {}; name another folder", folder.string()));
}

// Reads the --gtest_ flags. Those that make no sense for cases in child processes are not accepted.
void init_googletest(const std::vector<std::string>& flags) {
  const std::vector<std::string> known = {
      "--gtest_filter",  "--gtest_output",      "--gtest_list_tests", "--gtest_fail_fast",
      "--gtest_shuffle", "--gtest_random_seed", "--gtest_color"};
  std::vector<std::string> words = {"./tigon check"};
  for (const std::string& flag : flags) {
    require_known("flag", {flag.substr(0, flag.find('='))}, known);
    words.push_back(flag);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  auto count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  testing::InitGoogleTest(&count, arguments.data());
  if (count > 1) throw UsageError(fmt::format("{}: not a value of that flag", arguments[1]));
}

// The largest request goes through GoogleTest, which runs once per process; the sharding of its
// environment variables has been done.
void run_through_googletest(const CheckRequest& request, const CheckSink& sink) {
  for (const char* variable : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(variable);
  std::string name = "./tigon check";
  char* arguments[] = {name.data(), nullptr};
  int count = 1;
  run_checks_as_gtest(request, sink, &count, arguments);
}

}  // namespace

int check_stage(Session& session, const CheckOptions& options) {
  std::vector<CheckRequest> requests = requests_of(options);
  size_t total = 0;
  for (const CheckRequest& request : requests) total += request.cases.size();
  if (total == 0) {
    fmt::print("nothing to check: no case is selected\n");
    return kExitNothing;
  }
  Tally tally;
  Progress progress("check", static_cast<int>(total));
  CheckPrinter printer(&progress, options.verbose, budget_of(options.select) > 0);
  const auto count = [&](const CheckResult& r, const Diagnosis* diagnosis) {
    session.junit(junit_case(r));
    session.count(r.verdict);
    tally.add(r.verdict);
    printer.add(r, diagnosis);
  };
  Headroom headroom;
  Coverage coverage(options.coverage ? executor_kernels() : std::map<std::string, std::string>(),
                    launches_of);
  std::vector<std::string> counted;  // cases whose lines are counted
  NaiveErrors naive;
  Diagnoser diagnoser(options.shrink_s, kMostDiagnoses * options.shrink_s);
  const CheckSink sink = [&](const CheckResult& result) {
    CheckResult r = result;
    naive.complete(&r);
    if (is_failure(r.verdict)) naive.complete_failure(requests.back(), &r);
    headroom.add(r);
    coverage.add(r);
    if (options.lines && r.executor == "fast" && r.c.impl == "fused" && !is_skip(r.verdict) &&
        !is_failure(r.verdict))
      counted.push_back(case_id(r.c));
    const auto diagnosis = diagnoser.look_at(r, requests.back());
    Json fields = to_json(r);
    if (diagnosis) fields["diagnosis"] = to_json(*diagnosis);
    session.record("check", fields);
    count(r, diagnosis ? &*diagnosis : nullptr);
  };
  for (size_t i = 0; i < requests.size() && !interrupted(); ++i) {
    for (const CheckResult& r : take_sealed(session, &requests[i])) count(r, nullptr);
    for (const CheckResult& r : take_left_out(options.select, &requests[i])) sink(r);
    if (requests[i].cases.empty()) continue;
    if (const double budget = budget_of(options.select); budget > 0)
      run_budgeted(requests[i], budget, sink);
    else if (i + 1 < requests.size())
      run_checks(requests[i], sink);
    else
      run_through_googletest(requests[i], sink);
  }
  for (const Headroom::Row& row : headroom.rows()) session.record("headroom", to_json(row));
  if (options.headroom) print_headroom(headroom);
  const std::vector<Coverage::Row> covered = coverage.rows();
  for (const Coverage::Row& row : covered) session.record("coverage", to_json(row));
  if (options.coverage) {
    print_coverage(covered);
    print_gpu_only();
  }
  if (options.lines && !interrupted())
    if (const int code = count_lines(session, counted); code != kExitOk) return code;
  return tally.exit_code();
}

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ./tigon check                                  all ops\n"
    "  ./tigon check rms_norm --dtype bf16 --impl fused\n"
    "  ./tigon check --op cross_entropy -a V=[1000,32k] -a T[pow2]=[0:4]\n"
    "  ./tigon check --case 'rope/forward/fused/f32/T=3,Q=2,K=1,D=16,inputs=normal,seed=42'\n"
    "  ./tigon check --filter 'backward.*w=absent' --exclude naive --shard 0/4\n"
    "  ./tigon check --model llama3-8b --budget 60s   a model's sizes, pairwise, for a minute\n"
    "  ./tigon check --impl-from ./libmine.so         ops of a plug-in (harness/plugin)\n"
    "  ./tigon check --prop row_independence,offsets  exact properties, without the oracle\n"
    "  ./tigon check --trace rms_norm                 memory traffic beside the least bytes\n"
    "  ./tigon check --op rope --save /tmp/cases      tensors of every case as .npy files\n"
    "  ./tigon check --resume RUN                     goes on with an interrupted run\n"
    "On the host the tiny cases also run in the executor that checks every access of a kernel.\n"
    "GoogleTest's --gtest_filter and --gtest_list_tests choose among the cases of one executor\n"
    "(--executor, else the fast one); --gtest_output, --gtest_shuffle and --gtest_fail_fast are\n"
    "about that executor's cases, and those of the other run as well.";

void add_options(const Command& command, CheckOptions* options) {
  add_selection(command, &options->select);
  command.list("--prop", &options->properties,
               "only the cases of these properties, e.g. row_independence (./tigon describe OP "
               "lists them)");
  command.option("--executor", &options->executor, "fast, checked (host) or cuda (GPU)");
  command.option("--jobs", &options->jobs, "child processes at a time (default: one per core)")
      .not_negative();
  command.option("--save", &options->save,
                 "folder for every case's inputs, options, oracle's and implementation's "
                 "outputs as .npy");
  command
      .option("--shrink", &options->shrink_s,
              "seconds to look again at the first failing case of an op, pass and "
              "implementation, and for the smallest that fails like it (default 5, 0: not)")
      .not_negative();
  command.flag("--trace", &options->trace, "count memory traffic instead (host)");
  Option quick = command.flag("--quick", &options->quick,
                              "the tiny cases only, wide rows in one element type each");
  command
      .option("--tier", &options->tier,
              "tiny, check (the default), sweep (measured sizes) or huge (offsets beyond 2^31)")
      .excludes(quick);
  command.option("--as", &options->as, "take the launch paths of a GPU before sm_90 on any device")
      .one_of({kAsSm80});
  command.flag("--headroom", &options->headroom,
               "also print how near passed cases come to their budget");
  command.flag(
      "--coverage", &options->coverage,
      "also say which kernels no case launched, and which options, input sets, layouts and "
      "properties met on each (host)");
  command.flag("--lines", &options->lines,
               "also count the lines and branches of the kernels' sources that the cases take, in "
               "a slow second run (host)");
  add_plugin(command, &options->plugin);
  command.flag("-v,--verbose", &options->verbose, "a line for every case");
}

void run_check(CheckOptions* options, const Command& command, const Output& output,
               Program* program) {
  options->gtest_flags = program->gtest_flags;
  init_googletest(options->gtest_flags);
  if (!options->as.empty()) setenv(kAsVariable, options->as.c_str(), 1);  // of the children, too
  if (options->trace && default_executor() == "cuda")
    throw UsageError("--trace counts in the host executor: ./tigon --device host check --trace");
  if (options->lines && default_executor() == "cuda")
    throw UsageError("--lines counts in the host executor: ./tigon --device host check --lines");
  if (options->coverage && default_executor() == "cuda")
    throw UsageError("--coverage asks the host executor: ./tigon --device host check --coverage");
  SessionOptions session = session_options(*program, output, options->select.seed);
  use_plugin(command, &options->plugin, &options->select);
  const auto requests = requests_of(*options);  // a wrong command line makes no results folder
  if (!options->save.empty()) require_writable(options->save);
  if (testing::GTEST_FLAG(list_tests) && !requests.empty())
    return run_through_googletest(requests.back(), [](const CheckResult&) {});
  say_what_gtest_leaves_out(*options, requests.size());
  session.shard = shard_of(options->select.shard);
  program->exit_code = run_session(session, [&](Session& s) {
    return options->trace ? trace_stage(s, *options) : check_stage(s, *options);
  });
}

}  // namespace

void add_check(Command root, Program* program) {
  Command command = root.add_command("check", "correctness of every kernel against its oracle");
  command.footer(kExamples);
  const auto options = std::make_shared<CheckOptions>();
  const auto output = std::make_shared<Output>();
  const auto positional = std::make_shared<std::vector<std::string>>();
  command.option("ops", positional.get(), "ops, as --op");
  add_options(command, options.get());
  add_output(command, output.get());
  add_resume(command);
  command.run([=] {
    auto& ops = options->select.ops;
    ops.insert(ops.end(), positional->begin(), positional->end());
    run_check(options.get(), command, *output, program);
  });
}

}  // namespace tigon::cli
