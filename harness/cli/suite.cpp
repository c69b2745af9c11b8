// SPDX-License-Identifier: Apache-2.0
// The cases that `tigon check` runs.
#include "harness/cli/suite.h"

namespace tigon::cli {
namespace {

// The checking executor watches kernels that were compiled for it, which a library's are not.
bool is_checked_too(const CheckRequest& request, const Selection& selection) {
  return default_executor() == "fast" && request.executor.empty() && request.plugin.empty() &&
         (request.tier == Tier::kTiny || request.tier == Tier::kCheck) && request.axes.empty() &&
         request.cases.empty() && budget_of(selection) == 0;
}

}  // namespace

std::vector<CheckRequest> suite_of(const CheckRequest& request, const Selection& selection,
                                   const CasesOf& cases_of) {
  std::vector<CheckRequest> suite = {request};
  if (is_checked_too(request, selection)) {
    CheckRequest checked = request;
    checked.executor = "checked";
    checked.tier = Tier::kTiny;
    suite.insert(suite.begin(), checked);
  }
  const Exclusion excluded(selection.exclude);
  for (CheckRequest& r : suite) {
    r.cases = cases_of(r);
    std::erase_if(r.cases, [&](const Case& c) { return excluded(case_id(c)); });
    r.filter.clear();  // done, and so is the shard
    r.shard_index = 0;
    r.shard_count = 1;
  }
  std::erase_if(suite, [](const CheckRequest& r) { return r.cases.empty(); });
  return suite;
}

}  // namespace tigon::cli
