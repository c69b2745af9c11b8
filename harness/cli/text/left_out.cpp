// SPDX-License-Identifier: Apache-2.0
// Cases that are skipped before anything runs.
#include "harness/cli/text/left_out.h"

#include <fmt/format.h>

#include <map>

#include "harness/spec/op_spec.h"

namespace tigon::cli {
namespace {

// Somebody who names an implementation or a case wants to see what it does. Exact properties are
// promised on any inputs.
std::string known_miss_of(const Case& c, const Selection& selection) {
  const bool named = !selection.implementations.empty() || !selection.cases.empty();
  if (named || !c.property.empty()) return "";
  const Pass& pass = *find_pass(*find_op(c.op), c.pass);
  const std::string reason = known_miss(*find_implementation(pass, c.impl), c.inputs, c.dtype);
  return reason.empty() ? "" : fmt::format("{}; --impl {} runs it", reason, c.impl);
}

}  // namespace

std::vector<CheckResult> take_left_out(const Selection& selection, CheckRequest* request) {
  std::vector<CheckResult> taken;
  std::map<std::string, int> reasons;
  std::erase_if(request->cases, [&](const Case& c) {
    CheckResult r;
    r.reason = too_large(c, selection);
    if (r.reason.empty()) r.reason = known_miss_of(c, selection);
    if (r.reason.empty()) return false;
    r.c = c;
    r.verdict = Verdict::kSkipped;
    r.executor = request->executor.empty() ? default_executor() : request->executor;
    r.repro = fmt::format("./tigon --device cuda check --case '{}'", case_id(c));
    ++reasons[fmt::format("{}: {}", c.op, r.reason)];
    taken.push_back(std::move(r));
    return true;
  });
  for (const auto& [reason, cases] : reasons) fmt::print("skipped {} cases of {}\n", cases, reason);
  return taken;
}

}  // namespace tigon::cli
