// SPDX-License-Identifier: Apache-2.0
// tigon check: runs the cases, records and prints what comes of them.
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/commands/check_budget.h"
#include "harness/cli/commands/check_gtest.h"
#include "harness/cli/commands/check_lines.h"
#include "harness/cli/commands/check_requests.h"
#include "harness/cli/stages.h"
#include "harness/cli/text/check_printer.h"
#include "harness/cli/text/coverage_table.h"
#include "harness/cli/text/gpu_only.h"
#include "harness/cli/text/headroom_table.h"
#include "harness/cli/text/left_out.h"
#include "harness/run/executor.h"
#include "harness/run/judging/coverage.h"
#include "harness/run/judging/launches.h"
#include "harness/run/memory/headroom.h"

namespace tigon::cli {
namespace {

constexpr double kMostDiagnoses = 4;  // times --shrink

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

size_t cases_in(const std::vector<CheckRequest>& requests) {
  size_t total = 0;
  for (const CheckRequest& request : requests) total += request.cases.size();
  return total;
}

// A run of check: its requests, and what is gathered over them.
class CheckRun {
 public:
  CheckRun(Session* session, const CheckOptions& options, std::vector<CheckRequest> requests)
      : session_(*session),
        options_(options),
        requests_(std::move(requests)),
        progress_("check", static_cast<int>(cases_in(requests_))),
        printer_(&progress_, options.verbose, budget_of(options.select) > 0),
        coverage_(options.coverage ? executor_kernels() : std::map<std::string, std::string>(),
                  launches_of),
        diagnoser_(options.shrink_s, kMostDiagnoses * options.shrink_s) {}

  void run();
  // Records and prints what is said of all cases; returns the exit code.
  int conclude();

 private:
  // The only one that may go through GoogleTest.
  const CheckRequest& largest() const { return requests_.back(); }
  void run_cases(const CheckRequest& request);
  void judge(CheckResult r);
  void count(const CheckResult& r, const Diagnosis* diagnosis = nullptr);
  bool has_lines_counted(const CheckResult& r) const;

  Session& session_;
  const CheckOptions& options_;
  std::vector<CheckRequest> requests_;
  Tally tally_;
  Progress progress_;
  CheckPrinter printer_;
  Headroom headroom_;
  Coverage coverage_;
  std::vector<std::string> counted_;  // cases whose lines are counted
  NaiveErrors naive_;
  Diagnoser diagnoser_;
};

void CheckRun::run() {
  for (CheckRequest& request : requests_) {
    if (interrupted()) return;
    for (const CheckResult& r : take_sealed(session_, &request)) count(r);
    for (const CheckResult& r : take_left_out(options_.select, &request)) judge(r);
    if (!request.cases.empty()) run_cases(request);
  }
}

void CheckRun::run_cases(const CheckRequest& request) {
  const CheckSink sink = [this](const CheckResult& r) { judge(r); };
  if (const double budget = budget_of(options_.select); budget > 0)
    run_budgeted(request, budget, sink);
  else if (&request != &largest())
    run_checks(request, sink);
  else
    run_through_googletest(request, sink);
}

void CheckRun::judge(CheckResult r) {
  naive_.complete(&r);
  if (is_failure(r.verdict)) naive_.complete_failure(largest(), &r);
  headroom_.add(r);
  if (r.executor != "sm_80") coverage_.add(r);  // whose launches are not those of this process
  if (has_lines_counted(r)) counted_.push_back(case_id(r.c));
  const auto diagnosis = diagnoser_.look_at(r, largest());
  Json fields = to_json(r);
  if (diagnosis) fields["diagnosis"] = to_json(*diagnosis);
  session_.record("check", fields);
  count(r, diagnosis ? &*diagnosis : nullptr);
}

void CheckRun::count(const CheckResult& r, const Diagnosis* diagnosis) {
  session_.junit(junit_case(r));
  session_.count(r.verdict);
  tally_.add(r.verdict);
  printer_.add(r, diagnosis);
}

bool CheckRun::has_lines_counted(const CheckResult& r) const {
  return options_.lines && r.executor == "fast" && r.c.impl == "fused" && !is_skip(r.verdict) &&
         !is_failure(r.verdict);
}

int CheckRun::conclude() {
  printer_.end_group();
  for (const Headroom::Row& row : headroom_.rows()) session_.record("headroom", to_json(row));
  if (options_.headroom) print_headroom(headroom_);
  const std::vector<Coverage::Row> covered = coverage_.rows();
  for (const Coverage::Row& row : covered) session_.record("coverage", to_json(row));
  if (options_.coverage) {
    print_coverage(covered);
    print_gpu_only();
  }
  if (options_.lines && !interrupted())
    if (const int code = count_lines(session_, counted_); code != kExitOk) return code;
  return tally_.exit_code();
}

}  // namespace

int check_stage(Session& session, const CheckOptions& options) {
  std::vector<CheckRequest> requests = requests_of(options);
  if (cases_in(requests) == 0) {
    fmt::print("nothing to check: no case is selected\n");
    return kExitNothing;
  }
  CheckRun run(&session, options, std::move(requests));
  run.run();
  return run.conclude();
}

}  // namespace tigon::cli
