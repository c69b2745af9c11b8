// SPDX-License-Identifier: Apache-2.0
// Cases without a fault.
#include "harness/mutants/survey.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "harness/mutants/fault_id.h"
#include "harness/mutants/faulty_child.h"
#include "harness/run/cases/kinds.h"

namespace tigon {

namespace {

// Cases that a process runs before another may take the next ones.
constexpr size_t kChunk = 32;

std::string key_of(const std::string& executor, const Case& c) {
  return executor + " " + case_id(c);
}

}  // namespace

void Survey::run(const std::vector<MutantResult>& results, int jobs) {
  const bool is_right = request_.fault_of_baseline.empty();
  if (request_.libraries || default_executor() != "fast" || !is_right) return;
  const std::vector<Asked> asked = cases_of(results);
  size_t next = 0;
  done_ = 0;
  std::vector<std::jthread> workers;
  for (int i = 0; i < jobs; ++i) workers.emplace_back([&] { work(asked, &next); });
}

std::vector<Survey::Asked> Survey::cases_of(const std::vector<MutantResult>& results) {
  std::vector<Asked> all;
  for (const MutantResult& r : results) {
    if (!is_sampled(r)) continue;
    for (const std::string& executor : r.mutant->executors) {
      if (!surveyed_.insert(executor + " " + r.op).second) continue;
      MutantResult there = r;
      there.executor = executor;
      for (Case& c : cases_->of(there, Tier::kCheck)) all.push_back({executor, std::move(c)});
    }
  }
  return all;
}

void Survey::work(const std::vector<Asked>& asked, size_t* next) {
  std::unique_ptr<FaultyChild> child;
  std::string executor;
  for (;;) {
    size_t begin = 0;
    {
      const std::lock_guard lock(mutex_);
      begin = *next;
      *next += kChunk;
    }
    for (size_t i = begin; i < std::min(begin + kChunk, asked.size()); ++i) {
      if (interrupted()) return;
      SurveyedCase found;
      found.is_first = child == nullptr || executor != asked[i].executor;
      if (found.is_first) child = std::make_unique<FaultyChild>(request_, asked[i].executor, "");
      executor = asked[i].executor;
      const auto start = std::chrono::steady_clock::now();
      found.result = child->run(asked[i].c, "");
      found.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      found.reached = child->reached();
      std::sort(found.reached.begin(), found.reached.end());
      if (found.result.verdict != Verdict::kPassed) child.reset();
      const std::lock_guard lock(mutex_);
      known_[key_of(executor, asked[i].c)] = std::move(found);
      if (request_.on_survey) request_.on_survey(++done_, asked.size());
    }
    if (begin >= asked.size()) return;
  }
}

const SurveyedCase* Survey::find(const std::string& executor, const Case& c) const {
  const auto found = known_.find(key_of(executor, c));
  return found == known_.end() ? nullptr : &found->second;
}

std::vector<Case> Survey::reaching(const std::string& fault, const std::string& executor,
                                   std::vector<Case> cases) const {
  const uint32_t id = FaultId::hash(fault.c_str());
  bool at_begin = false;
  std::vector<Case> passing;
  for (const Case& c : cases) {
    const SurveyedCase* found = find(executor, c);
    if (found == nullptr) return cases;
    if (!std::binary_search(found->reached.begin(), found->reached.end(), id)) continue;
    at_begin = passing.empty() ? found->is_first : at_begin && found->is_first;
    passing.push_back(c);
  }
  return one_of_each_first(executor, at_begin ? std::move(cases) : std::move(passing));
}

std::vector<Case> Survey::one_of_each_first(const std::string& executor,
                                            std::vector<Case> cases) const {
  std::set<std::string> kinds;
  for (const Case& c : each_kind_once(cases)) kinds.insert(case_id(c));
  std::multimap<std::pair<bool, double>, Case> ranked;
  for (Case& c : cases) {
    const bool is_later = kinds.count(case_id(c)) == 0;
    const double seconds = find(executor, c)->seconds;
    ranked.emplace(std::pair(is_later, seconds), std::move(c));
  }
  std::vector<Case> ordered;
  for (auto& [rank, c] : ranked) ordered.push_back(std::move(c));
  return ordered;
}

}  // namespace tigon
