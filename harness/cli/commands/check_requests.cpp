// SPDX-License-Identifier: Apache-2.0
// What the options of tigon check ask for.
#include "harness/cli/commands/check_requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "harness/cli/commands/check_budget.h"
#include "harness/cli/commands/check_gtest.h"
#include "harness/cli/suite.h"
#include "harness/run/cases/kinds.h"
#include "harness/run/cases/known_names.h"

namespace tigon::cli {
namespace {

constexpr double kLargeTimeout = 300;  // seconds

Tier tier_of(const CheckOptions& options) {
  static const std::map<std::string, Tier> kTiers = {{"tiny", Tier::kTiny},
                                                     {"check", Tier::kCheck},
                                                     {"sweep", Tier::kSweep},
                                                     {"huge", Tier::kHuge}};
  if (options.tier.empty()) return options.quick ? Tier::kTiny : Tier::kCheck;
  require_known("tier", {options.tier}, {"tiny", "check", "sweep", "huge"});
  return kTiers.at(options.tier);
}

}  // namespace

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
  if (!options.executor.empty() &&
      !std::count(executors().begin(), executors().end(), options.executor))
    throw UsageError(fmt::format("--executor {}: this build has {}", options.executor,
                                 fmt::join(executors(), ", ")));
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

}  // namespace tigon::cli
