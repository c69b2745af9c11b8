// SPDX-License-Identifier: Apache-2.0
// What one more look at a failing case shows.
#include "harness/run/judging/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "harness/judge/compare.h"
#include "harness/run/executor.h"
#include "harness/run/judging/implementation_fault.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/memory/convert.h"
#include "harness/run/memory/device_case.h"

namespace tigon {

namespace {

constexpr size_t kMostElements = size_t{1} << 16;  // whose writers are looked up
constexpr unsigned kWarp = 32;

// The first element that differs between two calls: "y[0,3] 1.25 instead of 1.5; 7 of 15 elements".
std::string difference(const Problem& problem, const OutputBytes& now, const OutputBytes& before) {
  for (const CaseTensor& t : problem.tensors) {
    if (!t.is_output) continue;
    const auto &a = now.at(t.info->name), &b = before.at(t.info->name);
    const size_t size = size_of(t.dtype), elements = a.size() / size;
    size_t different = 0, first = 0;
    for (size_t i = elements; i-- > 0;) {
      if (std::memcmp(&a[i * size], &b[i * size], size) == 0) continue;
      ++different;
      first = i;
    }
    if (different == 0) continue;
    return fmt::format("{}[{}] {:.6g} instead of {:.6g}; {} of {} elements", t.info->name,
                       index_text(t.shape, first), widen(&a[first * size], 1, t.dtype)[0],
                       widen(&b[first * size], 1, t.dtype)[0], different, elements);
  }
  return "";
}

// Calls of one problem that differ in the order of threads or in the old contents of memory.
class Caller {
 public:
  explicit Caller(const Problem& problem) : device_case_(problem) {}

  OutputBytes call(int contents, int order) {
    device_case_.fill(contents);
    executor_set_order(order);
    executor_reset();
    device_case_.call(nullptr);
    stream_synchronize(nullptr);
    const auto findings = executor_findings();
    if (!findings.empty()) throw Stop{findings.front().verdict, findings.front().message};
    return device_case_.collect();
  }
  const TensorRef& memory(const std::string& name) const {
    return device_case_.bound().tensors.at(name);
  }

 private:
  DeviceCase device_case_;
};

// What the writers of all failing elements have in common and those of the others have not.
class Suspects {
 public:
  void add(const Writer& w, bool failing) {
    if (!w.known) return;
    const std::string facts[] = {
        fmt::format("block {}", w.block), fmt::format("thread {}", w.thread),
        fmt::format("lane {}", w.thread % kWarp), fmt::format("warp {}", w.thread / kWarp), w.line};
    for (size_t i = 0; i < kFacts; ++i) (failing ? guilty_ : innocent_)[i].insert(facts[i]);
  }

  std::string text() const {
    std::string by, at;
    for (size_t i = 0; i + 1 < kFacts; ++i) {
      const bool implied = (i == 2 || i == 3) && says(1);  // lane and warp of a thread
      if (says(i) && !implied) by += (by.empty() ? " by " : ", ") + *guilty_[i].begin();
    }
    if (guilty_[kLine].size() == 1 && !guilty_[kLine].begin()->empty())
      at = " at " + *guilty_[kLine].begin();
    return by + at;
  }

 private:
  static constexpr size_t kFacts = 5, kLine = 4;
  // All failing elements share it, and some other element was written by another.
  bool says(size_t i) const {
    if (guilty_[i].size() != 1) return false;
    const auto& others = innocent_[i];
    return others.size() > 1 || (others.size() == 1 && *others.begin() != *guilty_[i].begin());
  }

  std::set<std::string> guilty_[kFacts], innocent_[kFacts];
};

// Who wrote the failing elements, for every output that has some; only the checking executor knows.
void add_writers(const Problem& problem, const Caller& caller, const OutputBytes& outputs,
                 std::vector<std::string>* facts) {
  const auto expected = run_oracle(problem);
  for (const CaseTensor& t : problem.tensors) {
    if (!t.is_output) continue;
    const std::string& name = t.info->name;
    const auto& bytes = outputs.at(name);
    const size_t elements = bytes.size() / size_of(t.dtype);
    const auto got = widen(bytes.data(), elements, t.dtype);
    const Comparison c = compare(name, got, expected.at(name), t.shape, budget_of(problem, t));
    if (c.failing.empty() || elements > kMostElements) continue;
    const TensorRef& memory = caller.memory(name);
    std::vector<const void*> addresses;
    for (size_t i = 0; i < elements; ++i) {
      int64_t offset = 0;
      auto rest = static_cast<int64_t>(i);
      for (size_t d = t.shape.size(); d-- > 0; rest /= t.shape[d])
        offset += rest % t.shape[d] * memory.stride[d];
      addresses.push_back(static_cast<const char*>(memory.data) +
                          offset * static_cast<int64_t>(size_of(t.dtype)));
    }
    const auto writers = executor_writers(addresses);
    Suspects suspects;
    for (size_t i = 0; i < elements; ++i)
      suspects.add(writers[i],
                   std::binary_search(c.failing.begin(), c.failing.end(), static_cast<int64_t>(i)));
    if (const std::string text = suspects.text(); !text.empty())
      facts->push_back(fmt::format("the wrong elements of {} were all written{}", name, text));
  }
}

// A kernel of ours runs on threads whose order can be chosen; a library's does not.
bool runs_on_the_executor(const Problem& problem) {
  return problem.c.impl.rfind("fused", 0) == 0 && executor_orders().size() > 1;
}

void look(const Problem& problem, std::vector<std::string>* facts) {
  Caller caller(problem);
  const OutputBytes first = caller.call(0, 0);
  facts->push_back("guards around every tensor intact");
  if (executor_checks()) add_writers(problem, caller, first, facts);
  const auto& orders = executor_orders();
  const bool ours = runs_on_the_executor(problem);
  constexpr int kCalls = 4;
  std::string moved;
  for (int i = 1; i < kCalls && moved.empty(); ++i) {
    const std::string d = difference(problem, caller.call(0, i), first);
    if (!d.empty())
      moved = ours ? fmt::format("moves with the order of threads ({}): {}",
                                 orders[static_cast<size_t>(i) % orders.size()], d)
                   : fmt::format("moves from call to call: {}", d);
  }
  if (moved.empty())
    moved =
        ours ? "same bits in 4 orders of threads" : fmt::format("same bits in {} calls", kCalls);
  facts->push_back(moved);
  const std::string d = difference(problem, caller.call(1, 0), first);
  if (!d.empty())
    facts->push_back("moves with what outputs and workspace held before the call: " + d);
}

}  // namespace

Explanation explain_case(const Case& c) {
  Explanation e;
  try {
    const Problem problem = make_problem(c);
    look(problem, &e.facts);
  } catch (const Stop& stop) {
    e.facts.push_back(stop.reason);
  } catch (const ImplementationFault& fault) {
    e.facts.push_back(fault.what());
  } catch (const std::exception& error) {
    e.facts.push_back(error.what());
  }
  return e;
}

}  // namespace tigon
