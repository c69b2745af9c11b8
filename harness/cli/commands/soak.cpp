// SPDX-License-Identifier: Apache-2.0
// tigon soak: false alarms of correct kernels over random cases, and verdicts that change when the
// suite is repeated.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/suite.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/cases/chosen.h"
#include "harness/run/cases/soak_cases.h"
#include "harness/run/judging/soak.h"

namespace tigon::cli {
namespace {

constexpr int kBatch = 250;  // cases between two looks at the clock

struct SoakOptions {
  Selection select;
  int seeds = 100, repeat = 0, jobs = 0;
  double minutes = 0;
  int64_t most_elements = 0;
  bool quick = false;
};

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void print_alarm(Progress* progress, const CheckResult& r) {
  progress->line(fmt::format("{} {}: {}: {}\n  repro: {}", colored("ALARM", Color::kRed),
                             case_id(r.c), name_of(r.verdict), r.reason, r.repro));
}

// One op and dtype, until the clock says `end_s`.
SoakResult soak_one(Session& session, const SoakOptions& options, const SoakRequest& soak,
                    const Clock& clock, double end_s, Progress* progress) {
  const CheckRequest& base = soak.choice;
  SoakResult total;
  total.op = soak.op;
  total.dtype = soak.dtype;
  total.executor = base.executor.empty() ? default_executor() : base.executor;
  total.first_seed = base.seed;
  const Clock own;
  while (total.trials + total.skipped < options.seeds && !interrupted()) {
    if (clock.seconds() > end_s) break;
    const int done = total.trials + total.skipped;
    CheckRequest request = base;
    request.cases = soak_cases(soak, base.seed + static_cast<uint64_t>(done),
                               std::min(kBatch, options.seeds - done));
    run_checks(request, [&](const CheckResult& r) {
      session.count(r.verdict);
      (is_skip(r.verdict) ? total.skipped : total.trials) += 1;
      if (is_failure(r.verdict)) {
        print_alarm(progress, r);
        total.alarms.push_back(r);
      }
      progress->step(case_id(r.c));
    });
  }
  total.seconds = own.seconds();
  return total;
}

CheckRequest check_request_of(const SoakOptions& options) {
  CheckRequest request = request_of(options.select);
  request.jobs = options.jobs;
  return request;
}

// One for each op and dtype. Throws UsageError when one of them can draw no case.
std::vector<SoakRequest> soak_requests_of(const SoakOptions& options) {
  const CheckRequest base = check_request_of(options);
  std::vector<SoakRequest> groups;
  for (const OpSpec* op : chosen_ops(base))
    for (const DType dtype : chosen_dtypes(op->policies, base)) {
      groups.push_back({op->name, dtype, base, options.most_elements});
      soak_cases(groups.back(), 0, 0);  // none; it says what of the request is wrong
    }
  return groups;
}

std::string group_line(const SoakResult& r) {
  const std::string alarms = fmt::format("{} false alarms", r.alarms.size());
  return fmt::format("{:<24} {:<5} [{}] {} trials, {}, {} skipped, {:.1f} s", r.op,
                     name_of(r.dtype), r.executor, r.trials,
                     colored(alarms, r.alarms.empty() ? Color::kGreen : Color::kRed), r.skipped,
                     r.seconds);
}

int soak_seeds(Session& session, const SoakOptions& options,
               const std::vector<SoakRequest>& groups) {
  const auto count = static_cast<double>(groups.size());
  Progress progress("soak", static_cast<int>(groups.size()) * options.seeds);
  const Clock clock;
  bool alarmed = false, ran = false;
  int group = 0;
  for (const SoakRequest& soak : groups) {
    if (interrupted()) break;
    // Time that one group leaves is the next one's; the last are not left without any.
    const double share = ++group / count;
    const double end_s = options.minutes > 0 ? 60 * options.minutes * share
                                             : std::numeric_limits<double>::infinity();
    const SoakResult r = soak_one(session, options, soak, clock, end_s, &progress);
    session.record("soak", to_json(r));
    progress.line(group_line(r));
    alarmed = alarmed || !r.alarms.empty();
    ran = ran || r.trials > 0;
  }
  return alarmed ? kExitIncorrect : ran ? kExitOk : kExitNothing;
}

std::vector<CheckRequest> suite_to_repeat(const SoakOptions& options) {
  CheckRequest request = check_request_of(options);
  if (options.quick) request.tier = Tier::kTiny;
  return suite_of(request, options.select);
}

int soak_repeats(Session& session, const SoakOptions& options,
                 const std::vector<CheckRequest>& suite) {
  size_t cases = 0;
  for (const CheckRequest& r : suite) cases += r.cases.size();
  Progress progress("soak", static_cast<int>(cases) * options.repeat);
  const Clock clock;
  VerdictDiff diff;
  int failed = 0, repeats = 0;
  size_t shown = 0;
  for (; repeats < options.repeat && !interrupted(); ++repeats) {
    for (const CheckRequest& request : suite) {
      if (interrupted()) break;
      run_checks(request, [&](const CheckResult& r) {
        session.count(r.verdict);
        failed += is_failure(r.verdict);
        diff.add(r);
        for (; shown < diff.differing().size(); ++shown)
          progress.line(colored("DIFFERS ", Color::kRed) + diff.differing()[shown]);
        progress.step(case_id(r.c));
      });
    }
    if (options.minutes > 0 && clock.seconds() > 60 * options.minutes) {
      ++repeats;
      break;
    }
  }
  session.record("soak", {{"executor", default_executor()},
                          {"mode", "repeat"},
                          {"repeats", repeats},
                          {"cases", diff.cases()},
                          {"failed", failed},
                          {"differing_verdicts", diff.differing().size()},
                          {"differing", diff.differing()},
                          {"seconds_s", clock.seconds()}});
  progress.line(fmt::format("{} repeats of {} cases: {} differing verdicts, {} failures, {:.0f} s",
                            repeats, diff.cases(), diff.differing().size(), failed,
                            clock.seconds()));
  if (cases == 0) return kExitNothing;
  return diff.differing().empty() && failed == 0 ? kExitOk : kExitIncorrect;
}

}  // namespace

void add_soak(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon soak --op rms_norm --dtype bf16 --seeds 1000\n"
      "  ./tigon soak --seeds 100000 --minutes 10        all ops and dtypes, as far as time goes\n"
      "  ./tigon soak --repeat 50                        the whole suite of check, 50 times\n"
      "A seed stands for a random pass, shape, option set, input set and address of the contract.\n"
      "Exit code 1: a kernel failed, or a verdict changed.");
  const auto options = std::make_shared<SoakOptions>();
  const auto output = std::make_shared<Output>();
  add_selection(command, &options->select);
  command.option("--seeds", &options->seeds, "cases per op and dtype (default: 100)").positive();
  Option repeat =
      command.option("--repeat", &options->repeat, "run the suite of check so many times")
          .positive();
  command.option("--minutes", &options->minutes, "stop after so many minutes").positive();
  command
      .option("--most-elements", &options->most_elements,
              "bound of the product of all axes (default: 2^13 on the host, 2^22 on a GPU)")
      .positive();
  command.option("--jobs", &options->jobs, "child processes at a time (default: one per core)")
      .not_negative();
  command.flag("--quick", &options->quick, "with --repeat: the tiny cases only").needs(repeat);
  add_output(command, output.get());
  command.run([=] {
    if (!options->select.cases.empty())
      throw UsageError("soak draws its cases; run one case with ./tigon check --case");
    const SessionOptions session = session_options(*program, *output, options->select.seed);
    // A wrong command line makes no results folder.
    if (options->repeat > 0) {
      const std::vector<CheckRequest> suite = suite_to_repeat(*options);
      program->exit_code =
          run_session(session, [&](Session& s) { return soak_repeats(s, *options, suite); });
    } else {
      const std::vector<SoakRequest> groups = soak_requests_of(*options);
      program->exit_code =
          run_session(session, [&](Session& s) { return soak_seeds(s, *options, groups); });
    }
  });
}

}  // namespace tigon::cli
