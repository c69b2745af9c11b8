// SPDX-License-Identifier: Apache-2.0
// The cases that `tigon check` runs.
#include "harness/cli/suite.h"

namespace tigon::cli {
namespace {

// Of the other executors: the checking one watches kernels that were compiled for it, and the other
// gives them the limits of another GPU, neither of which a library's kernels know of.
bool is_on_all_executors(const CheckRequest& request, const Selection& selection) {
  return !on_gpu() && request.executor.empty() && request.plugin.empty() &&
         (request.tier == Tier::kTiny || request.tier == Tier::kCheck) && request.axes.empty() &&
         request.cases.empty() && budget_of(selection) == 0;
}

}  // namespace

std::vector<CheckRequest> suite_of(const CheckRequest& request, const Selection& selection,
                                   const CasesOf& cases_of) {
  std::vector<CheckRequest> suite = {request};
  if (is_on_all_executors(request, selection)) {
    CheckRequest other = request;
    other.tier = Tier::kTiny;
    for (const std::string& executor : executors()) {
      if (executor == default_executor()) continue;
      other.executor = executor;
      suite.insert(suite.end() - 1, other);
    }
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
