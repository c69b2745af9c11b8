// Cases that are skipped before anything runs.
#include "harness/cli/left_out.h"

#include <fmt/format.h>

#include <map>

namespace tigon::cli {

std::vector<CheckResult> take_too_large(const Selection& selection, CheckRequest* request) {
  std::vector<CheckResult> taken;
  std::map<std::string, int> reasons;
  std::erase_if(request->cases, [&](const Case& c) {
    CheckResult r;
    r.reason = too_large(c, selection);
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
