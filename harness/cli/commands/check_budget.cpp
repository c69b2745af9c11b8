// SPDX-License-Identifier: Apache-2.0
// Cases within a time.
#include "harness/cli/commands/check_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "harness/run/cases/covering.h"

namespace tigon::cli {
namespace {

constexpr double kSliceBytes = 0x1p30;  // of tensors, which are judged in some seconds

// What pairs are counted of: the request without its cases.
Covering covering_of(CheckRequest request) {
  request.cases.clear();
  return covering_cases(request);
}

// Of a case whatever its seed, which is a secret where kernels come from outside.
std::string key_of(Case c) {
  c.seed = 0;
  return case_id(c);
}

// From there on, what runs between two looks at the clock: work for every core, and few large
// cases.
std::vector<Case> slice_of(const std::vector<Case>& cases, size_t first) {
  const size_t most = 2 * std::max(1u, std::thread::hardware_concurrency());
  std::vector<Case> slice;
  for (double bytes = 0; first < cases.size() && slice.size() < most && bytes < kSliceBytes;
       ++first) {
    slice.push_back(cases[first]);
    bytes += stored_bytes(cases[first]);
  }
  return slice;
}

}  // namespace

std::vector<Case> budgeted_cases(const CheckRequest& request) {
  if (!request.properties.empty())
    throw UsageError("--budget covers sizes, options and inputs; --prop goes without it");
  if (request.tier == Tier::kSweep || request.tier == Tier::kHuge)
    throw UsageError("--budget goes with --tier tiny and check");
  CheckRequest chosen = request;
  select_cases(chosen);  // says what of the names is wrong
  chosen.cases = covering_of(request).cases;
  return chosen.cases.empty() ? chosen.cases : select_cases(chosen);
}

void run_budgeted(const CheckRequest& request, double seconds, const CheckSink& sink) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const Covering covering = covering_of(request);
  std::map<std::string, size_t> gains;
  for (size_t i = 0; i < covering.cases.size(); ++i)
    gains[key_of(covering.cases[i])] = covering.gains[i];
  size_t done = 0, met = 0;
  while (done < request.cases.size() && elapsed() < seconds && !interrupted()) {
    CheckRequest part = request;
    part.cases = slice_of(request.cases, done);
    run_checks(part, [&](const CheckResult& r) {
      ++done;
      met += gains[key_of(r.c)];
      sink(r);
    });
  }
  fmt::print(
      "covering: {} of {} pairs of values ({:.1f}%) met in {} of {} cases, {:.0f} s\n", met,
      covering.pairs,
      100.0 * static_cast<double>(met) / static_cast<double>(std::max<size_t>(1, covering.pairs)),
      done, request.cases.size(), elapsed());
  if (done < request.cases.size())
    fmt::print("covering: no time was left for {} cases; the next is {}\n",
               request.cases.size() - done, case_id(request.cases[done]));
}

}  // namespace tigon::cli
