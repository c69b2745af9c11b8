// SPDX-License-Identifier: Apache-2.0
// Choosing and running planted faults.
#include "harness/mutants/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <thread>
#include <tuple>

#include "harness/json/json.h"
#include "harness/mutants/fault_cases.h"
#include "harness/mutants/faulty_child.h"
#include "harness/mutants/survey.h"
#include "harness/run/cases/search_pattern.h"
#include "harness/run/check.h"

namespace tigon {

namespace {

constexpr int kMostChildren = 12;

bool contains(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Where the fault must be caught. Libraries are there for some executors alone.
std::vector<std::string> executors_of(const Mutant& m, const MutantRequest& request) {
  std::vector<std::string> found;
  for (const std::string& executor : m.executors)
    if (!on_gpu() && (!request.libraries || request.libraries->implementations.contains(executor)))
      found.push_back(executor);
  return found.empty() ? std::vector{default_executor()} : found;
}

// The verdicts of the kernels without a fault, each found once.
class Baseline {
 public:
  // nullopt when it is not known yet.
  std::optional<CheckResult> find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  }
  void add(const std::string& key, const CheckResult& result) {
    const std::lock_guard lock(mutex_);
    known_[key] = result;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, CheckResult> known_;
};

// What a run learns of cases, for all of its faults.
struct Known {
  Known(const MutantRequest& request, std::vector<std::string> ops)
      : cases(request, std::move(ops)), survey(request, &cases) {}
  FaultCases cases;
  Survey survey;
  Baseline baseline;
};

class Worker {
 public:
  Worker(const MutantRequest& request, Known* known) : request_(request), known_(*known) {}

  void run(MutantResult* r) {
    const auto start = std::chrono::steady_clock::now();
    judge(r);
    r->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  void judge(MutantResult* r) {
    if (!is_sampled(*r)) return judge_there(r);
    for (const std::string& executor : executors_of(*r->mutant, request_)) {
      r->executor = executor;
      judge_there(r);
      const bool unnoticed =
          r->outcome == MutantOutcome::kSurvived || r->outcome == MutantOutcome::kEquivalent;
      if (!unnoticed || interrupted()) return;
    }
  }

  // A process of its own for each fault, because static state is a fault, too. On a GPU, where
  // processes start slowly and one after the other, faults share one for as long as it does right
  // without them; what it says nothing certain of, a process of its own is asked. Most sampled ones
  // survive, and would be asked twice.
  void judge_there(MutantResult* r) {
    if (request_.shares_processes && !request_.libraries && !is_sampled(*r)) {
      std::unique_ptr<FaultyChild>& shared = shared_[r->executor];
      if (shared == nullptr) shared = start(*r);
      MutantResult there = *r;
      if (judge_in(shared.get(), true, &there)) {
        *r = std::move(there);
        return;
      }
    }
    judge_in(start(*r).get(), false, r);
  }

  // Whether the outcome is certain. Of a process that faults share it is not when nothing noticed
  // the fault, for which state of another may be to blame, or when a case fails without it, too.
  bool judge_in(FaultyChild* mutated, bool is_shared, MutantResult* r) {
    const auto proof = equivalence(*r->mutant, r->op, r->pass, r->dtype);
    const std::string& fault = r->mutant->name;
    std::string broken;
    for (const Case& c : cases_of(*r, proof.has_value())) {
      if (interrupted()) return true;
      const CheckResult with = mutated->run(c, fault);
      ++r->cases;
      std::tie(r->pass, r->dtype) = std::tie(c.pass, c.dtype);
      r->case_id = case_id(c);
      if (!is_failure(with.verdict)) continue;
      const CheckResult without =
          is_shared ? mutated->run(c, request_.fault_of_baseline) : right(c, r->executor);
      if (without.verdict != Verdict::kPassed && is_shared) {
        mutated->stop();
        return false;
      }
      if (without.verdict != Verdict::kPassed) {
        broken = fmt::format("{} without the fault: {}", name_of(without.verdict), without.reason);
        continue;
      }
      r->verdict = with.verdict;
      r->reason = with.reason;
      r->outcome = proof ? MutantOutcome::kInvalid : MutantOutcome::kCaught;
      if (proof) r->reason = fmt::format("declared equivalent ({}), but: {}", *proof, with.reason);
      return true;
    }
    finish(r, proof, broken);
    return proof.has_value();
  }

  std::vector<Case> cases_of(const MutantResult& r, bool is_equivalent) const {
    std::vector<Case> cases = known_.cases.of(r, is_equivalent ? Tier::kTiny : Tier::kCheck);
    if (!is_sampled(r)) return cases;
    return known_.survey.reaching(r.mutant->name, r.executor, std::move(cases));
  }

  std::unique_ptr<FaultyChild> start(const MutantResult& r) const {
    return std::make_unique<FaultyChild>(request_, r.executor, r.mutant->name);
  }

  // Nothing noticed the fault.
  static void finish(MutantResult* r, const std::optional<std::string>& proof,
                     const std::string& broken) {
    r->verdict = Verdict::kPassed;
    r->outcome = proof ? MutantOutcome::kEquivalent : MutantOutcome::kSurvived;
    r->reason = proof           ? *proof
                : r->cases == 0 ? "no case passes its place"
                                : fmt::format("{} cases pass", r->cases);
    if ((r->cases > 0 || is_sampled(*r)) && broken.empty()) return;
    r->outcome = MutantOutcome::kInvalid;
    r->reason = broken.empty() ? "no case" : broken;
  }

  CheckResult right(const Case& c, const std::string& executor) {
    if (const SurveyedCase* surveyed = known_.survey.find(executor, c)) return surveyed->result;
    const std::string key = executor + " " + case_id(c);
    if (const auto known = known_.baseline.find(key)) return *known;
    auto& child = without_fault_[executor];
    if (!child)
      child = std::make_unique<FaultyChild>(request_, executor, request_.fault_of_baseline);
    const CheckResult result = child->run(c, request_.fault_of_baseline);
    known_.baseline.add(key, result);
    return result;
  }

  const MutantRequest request_;
  Known& known_;
  std::map<std::string, std::unique_ptr<FaultyChild>> shared_, without_fault_;  // by executor
};

}  // namespace

std::filesystem::path MutantLibraries::folder_of(const std::string& fault) const {
  return folder / (fault.empty() ? "right" : "fault-" + fault);
}

std::filesystem::path MutantLibraries::library_of(const std::string& fault,
                                                  const std::string& executor) const {
  return folder_of(fault) / (executor + ".so");
}

const char* name_of(MutantOutcome outcome) {
  switch (outcome) {
    case MutantOutcome::kCaught:
      return "caught";
    case MutantOutcome::kSurvived:
      return "survived";
    case MutantOutcome::kEquivalent:
      return "equivalent";
    case MutantOutcome::kNotApplicable:
      return "not_applicable";
    case MutantOutcome::kInvalid:
      return "invalid";
  }
  return "?";
}

bool is_failure(MutantOutcome outcome) {
  return outcome == MutantOutcome::kSurvived || outcome == MutantOutcome::kInvalid;
}

namespace {

// Each fault in one of its places, the n-th fault in its n-th place, so that all ops have some.
std::vector<MutantResult> each_once(std::vector<MutantResult> all) {
  std::vector<MutantResult> part;
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(begin, all.end(),
                                  [&](const MutantResult& r) { return r.mutant != begin->mutant; });
    part.push_back(std::move(begin[static_cast<std::ptrdiff_t>(part.size()) % (end - begin)]));
    begin = end;
  }
  return part;
}

// Also those that a survivor meets.
std::vector<std::string> ops_of(const std::vector<MutantResult>& results) {
  std::vector<std::string> ops;
  const auto add = [&](const std::string& op) {
    if (!contains(ops, op)) ops.push_back(op);
  };
  for (const MutantResult& r : results) {
    add(r.op);
    for (const MutantTarget& target : r.mutant->also) add(target.op);
  }
  return ops;
}

}  // namespace

std::vector<MutantResult> select_mutants(const MutantRequest& request) {
  const std::regex filter = search_pattern("--filter", request.filter);
  std::vector<MutantResult> selected;
  for (const Mutant& m : request.faults.empty() ? all_mutants() : request.faults) {
    if (!contains(request.groups, m.group) || !std::regex_search(m.name, filter)) continue;
    for (const MutantTarget& target : m.targets) {
      if (!request.ops.empty() && !contains(request.ops, target.op)) continue;
      if (m.group == MutantGroup::kSampled) {
        selected.push_back(
            {&m, target.op, target.passes.front(), DType::kF32, executors_of(m, request).front()});
        continue;
      }
      for (const std::string& pass : target.passes)
        for (const std::string& executor : executors_of(m, request))
          for (const DType dtype : find_op(target.op)->policies) {
            if (!request.dtypes.empty() && !contains(request.dtypes, dtype)) continue;
            if (!m.dtypes.empty() && !contains(m.dtypes, dtype)) continue;
            MutantResult r{&m, target.op, pass, dtype, executor};
            if (!implementations_of(r, request).empty()) selected.push_back(std::move(r));
          }
    }
  }
  return request.part ? each_once(std::move(selected)) : selected;
}

MutantResult score_mutant(const Mutant& mutant, const std::string& op, const std::string& pass,
                          DType dtype) {
  const bool host = default_executor() == "fast";
  MutantResult r{&mutant, op, pass, dtype, host ? mutant.executors.front() : default_executor()};
  const MutantRequest request{.dtypes = {dtype}};
  Known known(request, {op});
  Worker(request, &known).run(&r);
  return r;
}

namespace {

void run_on_targets(const MutantRequest& request, std::vector<MutantResult> results, Known* known,
                    const MutantSink& sink) {
  const bool host = default_executor() == "fast";
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> done(results.size());
  size_t next = 0, running = 0;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int jobs = request.jobs > 0 ? request.jobs : std::min(cores, kMostChildren);
  known->survey.run(results, jobs);
  const auto work = [&] {
    Worker worker(request, known);
    std::unique_lock lock(mutex);
    while (next < results.size() && !interrupted()) {
      MutantResult& r = results[next];
      const size_t index = next++;
      lock.unlock();
      if (!host && !r.mutant->host_only.empty()) {
        r.outcome = MutantOutcome::kNotApplicable;
        r.reason = "host executor only: " + r.mutant->host_only;
      } else {
        worker.run(&r);
      }
      lock.lock();
      done[index] = !interrupted();
      changed.notify_all();
    }
    --running;
    changed.notify_all();
  };
  std::vector<std::jthread> workers;
  running = static_cast<size_t>(jobs);
  for (int i = 0; i < jobs; ++i) workers.emplace_back(work);
  for (size_t i = 0; i < results.size(); ++i) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done[i] || running == 0; });
    if (!done[i]) return;
    lock.unlock();
    sink(results[i]);
  }
}

// What the cases of another op say of a survivor.
void add_result_of(const MutantResult& there, MutantResult* r) {
  r->cases += there.cases;
  r->seconds += there.seconds;
  if (there.outcome == MutantOutcome::kCaught) {
    std::tie(r->outcome, r->verdict, r->case_id, r->reason) =
        std::tie(there.outcome, there.verdict, there.case_id, there.reason);
  } else if (r->outcome == MutantOutcome::kSurvived) {
    r->reason += fmt::format("; of {}: {}", there.op, there.reason);
  }
}

bool has_others(const MutantResult& r) {
  return is_sampled(r) && r.outcome == MutantOutcome::kSurvived &&
         std::any_of(r.mutant->also.begin(), r.mutant->also.end(),
                     [&](const MutantTarget& target) { return target.op != r.op; });
}

// What survived, in the ops that share its source with the one that it was drawn for: their cases
// are part of plain `check` as well.
void run_on_others(const MutantRequest& request, std::vector<MutantResult> survived, Known* known,
                   const MutantSink& sink) {
  MutantRequest others = request;
  others.ops.clear();
  others.faults.clear();
  std::set<std::string> names;
  for (const MutantResult& r : survived)
    if (names.insert(r.mutant->name).second) {
      others.faults.push_back(*r.mutant);
      others.faults.back().targets = r.mutant->also;
    }
  std::vector<MutantResult> results = select_mutants(others);
  std::map<std::string, size_t> left;  // results of each
  for (const MutantResult& r : results) ++left[r.mutant->name];
  run_on_targets(others, std::move(results), known, [&](const MutantResult& there) {
    const bool is_last = --left.at(there.mutant->name) == 0;
    for (MutantResult& r : survived) {
      if (r.mutant->name != there.mutant->name) continue;
      if (r.op != there.op) add_result_of(there, &r);
      if (is_last) sink(r);
    }
  });
}

}  // namespace

void run_mutants(const MutantRequest& request, const MutantSink& sink) {
  std::vector<MutantResult> survived;
  std::vector<MutantResult> results = select_mutants(request);
  if (!request.libraries) program_for(request);
  Known known(request, ops_of(results));
  run_on_targets(request, std::move(results), &known, [&](const MutantResult& r) {
    if (has_others(r))
      survived.push_back(r);
    else
      sink(r);
  });
  if (!survived.empty() && !interrupted())
    run_on_others(request, std::move(survived), &known, sink);
}

Json to_json(const MutantResult& r) {
  return {{"mutant", r.mutant->name},
          {"what", r.mutant->what},
          {"catalogue", r.mutant->catalogue},
          {"group", name_of(r.mutant->group)},
          {"op", r.op},
          {"pass", r.pass},
          {"dtype", name_of(r.dtype)},
          {"executor", r.executor},
          {"outcome", name_of(r.outcome)},
          {"verdict", name_of(r.verdict)},
          {"case_id", r.case_id},
          {"reason", r.reason},
          {"cases", r.cases},
          {"seconds_s", r.seconds}};
}

}  // namespace tigon
