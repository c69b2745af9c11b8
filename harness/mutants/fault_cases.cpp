// SPDX-License-Identifier: Apache-2.0
// Plans by pass and dtype, and the order of their cases.
#include "harness/mutants/fault_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <regex>

namespace tigon {
namespace {

// Larger cases are tried last: they take most of the time and show little that small ones hide.
constexpr double kSmallElements = 2e5;

double elements(const Case& c) {
  double n = 1;
  for (const auto& [axis, size] : c.axes) n *= static_cast<double>(size);
  return n;
}

// Nobody says where a sampled fault shows, and there are many: those that only a large case on the
// slow executor would catch survive.
void order_by_size(const std::string& executor, std::vector<Case>* cases) {
  if (executor == "checked")
    std::erase_if(*cases, [](const Case& c) { return elements(c) > kSmallElements; });
  std::stable_sort(cases->begin(), cases->end(),
                   [](const Case& a, const Case& b) { return elements(a) < elements(b); });
}

void order_by_hint(const std::string& hint, std::vector<Case>* cases) {
  std::stable_partition(cases->begin(), cases->end(),
                        [](const Case& c) { return elements(c) <= kSmallElements; });
  if (hint.empty()) return;
  const std::regex pattern(hint);
  std::stable_partition(cases->begin(), cases->end(),
                        [&](const Case& c) { return std::regex_search(case_id(c), pattern); });
}

}  // namespace

// Whose kernels have the fault; of libraries those with an op of this dtype.
std::vector<std::string> implementations_of(const MutantResult& r, const MutantRequest& request) {
  if (!request.libraries) return {"fused"};
  std::vector<std::string> found;
  for (const std::string& name : request.libraries->implementations.at(r.executor)) {
    const auto* has = find_implementation(*find_pass(*find_op(r.op), r.pass), name);
    if (has == nullptr) continue;
    const auto& types = has->policies;
    if (std::find(types.begin(), types.end(), r.dtype) != types.end()) found.push_back(name);
  }
  return found;
}

bool is_sampled(const MutantResult& r) { return r.mutant->group == MutantGroup::kSampled; }

std::vector<Case> FaultCases::of(const MutantResult& r, Tier tier) {
  CheckRequest check;
  check.ops = ops_;
  check.implementations = implementations_of(r, request_);
  check.executor = r.executor;
  check.tier = r.executor == default_executor() ? tier : Tier::kTiny;
  check.seed = request_.seed;
  check.dtypes = request_.dtypes;
  const bool sampled = is_sampled(r);
  if (request_.libraries) {
    check.ops = {r.op};
    if (!sampled) check.passes = {r.pass}, check.dtypes = {r.dtype};
  }
  std::string key = fmt::format("{} {} {}", r.executor, static_cast<int>(check.tier),
                                fmt::join(check.implementations, ","));
  if (request_.libraries)
    key += fmt::format(" {} {} {}", r.op, fmt::join(check.passes, ""), name_of(r.dtype));
  const std::vector<Case>& all = planned(check, key);
  std::vector<Case> cases;
  std::copy_if(all.begin(), all.end(), std::back_inserter(cases), [&](const Case& c) {
    return c.op == r.op && (sampled || (c.pass == r.pass && c.dtype == r.dtype));
  });
  if (sampled)
    order_by_size(r.executor, &cases);
  else
    order_by_hint(r.mutant->hint, &cases);
  return cases;
}

const std::vector<Case>& FaultCases::planned(const CheckRequest& check, const std::string& key) {
  Planned* plan = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Planned>& known = plans_[key];
    if (known == nullptr) known = std::make_unique<Planned>();
    plan = known.get();
  }
  std::call_once(plan->once, [&] { plan->cases = select_cases(check); });
  return plan->cases;
}

}  // namespace tigon
