// SPDX-License-Identifier: Apache-2.0
// Diagnosis of a failing case.
#include "harness/run/judging/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "harness/json/json.h"
#include "harness/run/executor.h"
#include "harness/run/judging/huge.h"
#include "harness/run/process/child.h"
#include "harness/run/process/wire.h"

namespace tigon {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOtherSeeds = 3;

// What two results of one fault have in common. Memory that was never written is NaN, a wrong
// number or a difference between runs, as it happens.
std::string kind_of(const CheckResult& r) {
  switch (r.verdict) {
    case Verdict::kIncorrectNumerical:
    case Verdict::kNonfinite:
    case Verdict::kNondeterministic:
    case Verdict::kUnwrittenOutput:
      return "numbers";
    case Verdict::kRuntimeError:  // what happened, without where
      return r.reason.substr(0, std::min<size_t>(16, r.reason.find_first_of("0123456789(")));
    default:
      return name_of(r.verdict);
  }
}

bool fails_like(const CheckResult& a, const CheckResult& b) { return kind_of(a) == kind_of(b); }

// Runs cases of one failure until its time is over.
class Examiner {
 public:
  Examiner(const CheckResult& failure, const CheckRequest& like, double seconds)
      : failure_(failure),
        child_(program_of(failure.executor), failure.executor, 1, like.plugin),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  bool more() const { return remaining() > 0 && !interrupted(); }

  CheckResult check(const Case& c) {
    const Reply reply = ask(&child_, c, "check");
    if (reply.kind == Reply::kAnswer) {
      bool last = false;
      CheckResult r = decode_check(reply.text, &last);
      r.executor = failure_.executor;
      if (last) child_.stop();
      return r;
    }
    CheckResult r;
    r.c = c;
    r.executor = failure_.executor;
    r.verdict = reply.kind == Reply::kCrashed ? Verdict::kCrashed : Verdict::kTimeout;
    r.reason = reply.text;
    return r;
  }

  bool fails(const Case& c) {
    CheckResult r = check(c);
    const bool same = fails_like(r, failure_);
    if (same) smallest_ = std::move(r);
    return same;
  }
  // The result of the last case that failed in the same way.
  const CheckResult& smallest() const { return smallest_; }

  // The executor that watches every access knows most, where it can run the case.
  std::vector<std::string> explain(const Case& c) {
    std::vector<std::string> facts;
    const bool has_kernels = c.impl.rfind("fused", 0) == 0;
    if (failure_.executor == "fast" && has_kernels && elements_of(c) <= kMostCheckedElements) {
      Child checked(program_of("checked"), "checked", 1);
      facts = facts_of(ask(&checked, c, "explain"), "under the memory checker: ");
    }
    return facts.empty() ? facts_of(ask(&child_, c, "explain"), "") : facts;
  }

 private:
  static constexpr double kMostCheckedElements = 1 << 16;

  static double elements_of(const Case& c) {
    double elements = 1;
    for (const auto& [axis, size] : c.axes)
      elements *= static_cast<double>(std::max<int64_t>(size, 1));
    return elements;
  }

  static std::vector<std::string> facts_of(const Reply& reply, const std::string& where) {
    if (reply.kind == Reply::kAnswer) return decode_explanation(reply.text).facts;
    if (reply.kind == Reply::kCrashed) return {where + reply.text};
    return {};
  }

  double remaining() const { return std::chrono::duration<double>(end_ - Clock::now()).count(); }

  // A child that has just been started needs a moment even when time is short.
  Reply ask(Child* child, const Case& c, const std::string& what) {
    return child->ask(encode(WireRequest{case_id(c), "", what}), std::max(1.0, remaining()));
  }

  const CheckResult& failure_;
  Child child_;
  Clock::time_point end_;
  CheckResult smallest_;
};

std::string other_seeds(const CheckResult& failure, Examiner* examiner) {
  int tried = 0, failed = 0;
  for (Case other = failure.c; tried < kOtherSeeds && examiner->more(); ++tried) {
    ++other.seed;
    if (fails_like(examiner->check(other), failure)) ++failed;
  }
  if (tried == 0) return "";
  if (failed == tried)
    return fmt::format("fails with {} of {} other seeds: not the data", failed, tried);
  return fmt::format("fails with {} of {} other seeds: moves with the data", failed, tried);
}

bool can_be_looked_at(const CheckResult& r) {
  return is_failure(r.verdict) && r.verdict != Verdict::kTimeout && r.verdict != Verdict::kOom &&
         r.c.inputs != kTiledInputs;
}

}  // namespace

std::optional<Diagnosis> Diagnoser::look_at(const CheckResult& failure, const CheckRequest& like) {
  if (!can_be_looked_at(failure) || interrupted()) return std::nullopt;
  const double seconds = std::min(each_, remaining_);
  const Case& c = failure.c;
  if (!(seconds > 0) || !seen_.insert(c.op + "/" + c.pass + "/" + c.impl).second)
    return std::nullopt;
  const auto start = Clock::now();
  Diagnosis d;
  try {
    Examiner examiner(failure, like, seconds);
    d.smallest = failure;
    const bool again = examiner.fails(c);
    d.facts = examiner.explain(c);
    if (!again) {
      d.shrunk.smallest = c;
      d.facts.push_back("did not fail again in the same way: passes and fails by turns");
    } else {
      const std::string seeds = other_seeds(failure, &examiner);
      if (!seeds.empty()) d.facts.push_back(seeds);
      d.shrunk = shrink(
          c, [&](const Case& smaller) { return examiner.fails(smaller); },
          [&] { return examiner.more(); });
      d.smallest = examiner.smallest();
    }
  } catch (const std::exception& error) {  // the verdict stands without
    d.shrunk.smallest = c;
    d.facts.push_back(fmt::format("could not be looked at again: {}", error.what()));
  }
  d.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  remaining_ -= d.seconds;
  return d;
}

Json to_json(const Diagnosis& d) {
  return {{"smallest", case_id(d.shrunk.smallest)},
          {"needs", d.shrunk.needs},
          {"tries", d.shrunk.tries},
          {"finished", d.shrunk.finished},
          {"facts", d.facts},
          {"seconds_s", d.seconds}};
}

}  // namespace tigon
