// SPDX-License-Identifier: Apache-2.0
// One case in this process.
#include "harness/run/judging/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "harness/judge/compare.h"
#include "harness/run/executor.h"
#include "harness/run/judging/chosen_launch.h"
#include "harness/run/judging/huge.h"
#include "harness/run/judging/implementation_fault.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/judging/properties.h"
#include "harness/run/judging/save.h"
#include "harness/run/memory/convert.h"
#include "harness/run/memory/device_case.h"

namespace tigon {

namespace {

bool holds_poison(const std::byte* element, size_t bytes, unsigned char poison) {
  return std::all_of(element, element + bytes,
                     [&](std::byte b) { return b == static_cast<std::byte>(poison); });
}

// Two runs over different poisons must agree in every bit.
void require_same(const Problem& problem, const OutputBytes& first, const OutputBytes& second) {
  for (const CaseTensor& t : problem.tensors) {
    if (!t.is_output) continue;
    const auto &a = first.at(t.info->name), &b = second.at(t.info->name);
    const size_t size = size_of(t.dtype);
    size_t unwritten = 0, different = 0, first_unwritten = 0, first_different = 0;
    for (size_t i = 0; i < a.size(); i += size) {
      if (std::memcmp(&a[i], &b[i], size) == 0) continue;
      if (holds_poison(&a[i], size, kPoisons[0]) && holds_poison(&b[i], size, kPoisons[1])) {
        if (unwritten++ == 0) first_unwritten = i / size;
      } else if (different++ == 0) {
        first_different = i / size;
      }
    }
    if (unwritten > 0)
      throw Stop{Verdict::kUnwrittenOutput,
                 fmt::format("never wrote {}[{}]; {} of {} elements", t.info->name,
                             index_text(t.shape, first_unwritten), unwritten, a.size() / size)};
    if (different > 0)
      throw Stop{Verdict::kNondeterministic,
                 fmt::format("two runs on the same inputs, over different old contents of outputs "
                             "and workspace, differ at {}[{}]; {} of {} elements",
                             t.info->name, index_text(t.shape, first_different), different,
                             a.size() / size)};
  }
}

void judge(const Problem& problem, const std::map<std::string, Expected>& expected,
           const OutputBytes& outputs, CheckResult* result) {
  Judgement judgement;
  for (const CaseTensor& t : problem.tensors) {
    if (!t.is_output) continue;
    const auto& bytes = outputs.at(t.info->name);
    const auto got = widen(bytes.data(), bytes.size() / size_of(t.dtype), t.dtype);
    Comparison c =
        compare(t.info->name, got, expected.at(t.info->name), t.shape, budget_of(problem, t));
    judgement.add(c);
    result->outputs.push_back(std::move(c.result));
  }
  result->verdict = judgement.verdict;
  result->reason = judgement.reason;
}

bool supports(const Problem& problem) {
  const auto& policies = problem.implementation->policies;
  return std::find(policies.begin(), policies.end(), problem.c.dtype) != policies.end();
}

void run_problem(const Problem& problem, const std::string& save_folder, CheckResult* result) {
  if (!supports(problem)) throw Stop{Verdict::kUnsupported, "not built for this dtype"};
  if (!problem.c.property.empty()) return check_property(problem, result);
  DeviceCase on_device(problem);
  const OutputBytes first = on_device.run(0, &result->seconds);
  const auto expected = run_oracle(problem);
  judge(problem, expected, first, result);
  if (!save_folder.empty()) save_case(save_folder, problem, expected, first, *result);
  const OutputBytes second = on_device.run(1);
  const bool right = result->verdict == Verdict::kPassed;
  try {
    require_same(problem, first, second);
  } catch (const Stop& stop) {
    // An output that was never written is the cause of its wrong numbers; a run that differs is
    // said only of numbers that are right.
    if (right || stop.verdict == Verdict::kUnwrittenOutput) throw;
    result->reason += "; " + stop.reason;
  }
}

}  // namespace

CheckResult run_case(const Case& c, const std::string& save_folder, bool* fatal) {
  CheckResult result;
  result.c = c;
  result.executor = this_executor();
  *fatal = false;
  executor_take_launched();
  const auto end_with = [&](Verdict verdict, const std::string& reason) {
    result.verdict = verdict;
    result.reason = reason;
  };
  try {
    if (c.inputs == kTiledInputs) {
      check_huge(c, {}, &result);
      return result;
    }
    const ChosenLaunch launch(c);
    const Problem problem = make_problem(c);
    run_problem(problem, save_folder, &result);
  } catch (const Stop& stop) {
    end_with(stop.verdict, stop.reason);
  } catch (const ImplementationFault& fault) {
    end_with(fault.verdict, fault.what());
  } catch (const DeviceOutOfMemory& e) {
    end_with(Verdict::kOom, e.what());
  } catch (const std::bad_alloc&) {
    end_with(Verdict::kOom, "out of host memory");
  } catch (const DeviceError& e) {
    end_with(Verdict::kRuntimeError, e.what());
    *fatal = true;
  } catch (const std::exception& e) {
    end_with(Verdict::kRuntimeError, e.what());
  }
  result.kernels = executor_take_launched();
  return result;
}

TraceResult trace_case(const Case& c) {
  TraceResult trace;
  trace.c = c;
  try {
    const Problem problem = make_problem(c);
    if (!supports(problem)) throw Stop{Verdict::kUnsupported, "not built for this dtype"};
    DeviceCase on_device(problem);
    on_device.run(0);
    trace.kernels = executor_counters();
    trace.lines = executor_line_counters();
    trace.verdict = Verdict::kPassed;
  } catch (const Stop& stop) {
    trace.verdict = stop.verdict;
    trace.reason = stop.reason;
  } catch (const std::exception& e) {
    trace.verdict = Verdict::kRuntimeError;
    trace.reason = e.what();
  }
  return trace;
}

}  // namespace tigon
