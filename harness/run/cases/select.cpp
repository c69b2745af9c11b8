// SPDX-License-Identifier: Apache-2.0
// Which cases a request selects: the plan of every implementation and dtype, then filters and
// shards.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/run/cases/chosen.h"
#include "harness/run/cases/plan.h"
#include "harness/run/cases/search_pattern.h"
#include "harness/worker/process.h"
#include "kernels/device/runtime.h"

namespace tigon {

namespace {

class Filter {
 public:
  explicit Filter(const std::string& text) : negate_(!text.empty() && text[0] == '-') {
    regex_ = search_pattern("--filter", negate_ ? text.substr(1) : text);
    all_ = text.empty();
  }
  bool operator()(const std::string& id) const {
    return all_ || std::regex_search(id, regex_) != negate_;
  }

 private:
  bool negate_, all_ = false;
  std::regex regex_;
};

// Libraries before the others: the baseline's errors are known when those are compared with them.
// A library's kernels know nothing of the other executors.
std::vector<const Implementation*> baseline_first(const Pass& pass, const CheckRequest& request) {
  auto all = chosen_implementations(
      pass, request, request.executor.empty() || request.executor == default_executor());
  std::stable_partition(all.begin(), all.end(),
                        [](const Implementation* i) { return is_library(*i); });
  return all;
}

std::vector<Case> enumerate(const CheckRequest& request, bool launches) {
  std::vector<Case> cases;
  for (const ChosenPass& chosen : chosen_passes(request))
    for (const Implementation* impl : baseline_first(*chosen.pass, request))
      for (const DType dtype : chosen_dtypes(chosen.op->policies, request))
        for (Case& c : planned_cases(chosen, request, *impl, dtype, launches))
          cases.push_back(std::move(c));
  return cases;
}

constexpr char kEnd[] = "", kNoDevice[] = "no device", kFailed[] = "failed: ";
constexpr double kPlanS = 120;

// The ids of the cases with launch shapes, a line each.
void send_cases(const CheckRequest& request, int socket) {
  try {
    device_info();
  } catch (const std::exception&) {
    worker::send_line(socket, kNoDevice);
    return;
  }
  try {
    for (const Case& c : enumerate(request, true)) worker::send_line(socket, case_id(c));
    worker::send_line(socket, kEnd);
  } catch (const std::exception& error) {
    worker::send_line(socket, kFailed + std::string(error.what()));
  }
}

// The same by a copy of this process, which must not use a GPU before it forks others. Without a
// device there are no launch shapes; what runs the cases says so.
std::vector<Case> enumerate_apart(const CheckRequest& request) {
  worker::Process copy;
  copy.fork([&](int socket) { send_cases(request, socket); });
  std::vector<Case> cases;
  for (;;) {
    const worker::Heard heard = copy.hear({.silence_s = kPlanS});
    if (heard.kind != worker::Heard::kAnswer || heard.text.starts_with(kFailed))
      throw DeviceError("the plan of launches: " + heard.text + heard.last_words);
    if (heard.text == kNoDevice) return enumerate(request, false);
    if (heard.text == kEnd) return cases;
    cases.push_back(parse_case(heard.text));
  }
}

// The cases of passes over ranks, each with so many ranks and once.
std::vector<Case> over_ranks(const std::vector<Case>& cases, int ranks) {
  std::vector<Case> found;
  std::set<std::string> ids;
  for (Case c : cases) {
    if (!is_over_ranks(*find_pass(*find_op(c.op), c.pass))) continue;
    c.options[kRanksOption] = std::to_string(ranks);
    if (ids.insert(case_id(c)).second) found.push_back(std::move(c));
  }
  return found;
}

// Elements: shorter rows take no cluster and little shared memory on any GPU.
constexpr int64_t kClusterless = 4096;

bool is_of_short_rows(const Case& c) {
  return std::all_of(c.axes.begin(), c.axes.end(),
                     [](const auto& axis) { return axis.second < kClusterless; });
}

std::vector<Case> planned(const CheckRequest& request) {
  const bool small = request.tier == Tier::kCheck || request.tier == Tier::kTiny;
  const bool launches = small && request.axes.empty();
  std::vector<Case> cases =
      launches && on_gpu() ? enumerate_apart(request) : enumerate(request, launches);
  if (request.executor == "sm_80" && request.axes.empty()) std::erase_if(cases, is_of_short_rows);
  return cases;
}

}  // namespace

std::vector<Case> select_cases(const CheckRequest& request) {
  require_possible(request);
  const Filter filter(request.filter);
  std::vector<Case> cases = request.cases.empty() ? planned(request) : request.cases;
  if (request.ranks > 0) cases = over_ranks(cases, request.ranks);
  std::erase_if(cases, [&](const Case& c) {
    const std::string id = case_id(c);
    const auto& properties = request.properties;
    if (!properties.empty() && (c.property.empty() || !is_chosen(properties, c.property)))
      return true;
    const auto shard =
        static_cast<int>(stable_hash(id) % static_cast<uint64_t>(request.shard_count));
    return !filter(id) || shard != request.shard_index;
  });
  return cases;
}

}  // namespace tigon
