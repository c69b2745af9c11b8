// One case in this process.
#include "harness/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>

#include "harness/judge/compare.h"
#include "harness/run/arena.h"
#include "harness/run/convert.h"
#include "harness/run/executor.h"
#include "harness/run/oracle.h"
#include "harness/run/save.h"

namespace tigon {

namespace {

constexpr const char* kWorkspace = "the workspace";

// A verdict that ends the case early.
struct Stop {
  Verdict verdict;
  std::string reason;
};

std::string place(const std::vector<int64_t>& shape, size_t element) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0;) {
    const auto length = static_cast<size_t>(shape[d]);
    text = fmt::format("{}{}{}", element % length, text.empty() ? "" : ",", text);
    element /= length;
  }
  return text;
}

// A case in device memory.
class Placed {
 public:
  explicit Placed(const Problem& problem) : problem_(problem) {
    const auto& strided = problem.pass->strided;
    for (const CaseTensor& t : problem.tensors) {
      const bool has_gap = std::find(strided.begin(), strided.end(), t.info->name) != strided.end();
      tensors_.emplace_back(t.info->name, t.dtype, t.shape, has_gap ? problem.c.gap : 0,
                            problem.c.shift);
      bound_.tensors[t.info->name] = tensors_.back().ref();
    }
    bound_.values = problem.binding;
    const Implementation& impl = *problem.implementation;
    const size_t bytes = impl.workspace ? impl.workspace(problem.c.dtype, bound_) : 0;
    if (bytes > 0) {
      workspace_.emplace(kWorkspace, DType::kU8, std::vector<int64_t>{static_cast<int64_t>(bytes)},
                         0, 0);
      bound_.scratch = {workspace_->ref().data, bytes};
    }
    if (impl.prepare) require(impl.prepare(problem.c.dtype, bound_));
  }

  // One call over poisoned outputs; returns the outputs. Throws Stop.
  OutputBytes run(int round, double* seconds) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const CaseTensor& t = problem_.tensors[i];
      tensors_[i].set_round(round);
      if (t.is_input)
        tensors_[i].upload(narrow(t.input, t.dtype));
      else
        tensors_[i].poison(kPoisons[round]);
    }
    if (workspace_) {
      workspace_->set_round(round);
      workspace_->poison(kPoisons[round]);
    }
    executor_set_order(round);
    executor_reset();
    const auto start = std::chrono::steady_clock::now();
    const Status status = problem_.implementation->run(problem_.c.dtype, bound_, nullptr);
    require(status);
    stream_synchronize(nullptr);
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    require_no_findings();
    return collect();
  }

 private:
  static void require_no_findings() {
    const auto findings = executor_findings();
    if (!findings.empty()) throw Stop{findings.front().verdict, findings.front().message};
  }

  static void require(const Status& status) {
    if (status.ok()) return;
    require_no_findings();  // says more than the status
    const Verdict verdict =
        status.code == Status::kUnsupported ? Verdict::kUnsupported : Verdict::kRuntimeError;
    throw Stop{verdict, status.reason};
  }

  OutputBytes collect() {
    OutputBytes outputs;
    std::optional<std::string> damage, modified;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const CaseTensor& t = problem_.tensors[i];
      auto bytes = tensors_[i].download(&damage);
      if (!t.is_output && !modified) modified = difference(t, bytes);
      if (t.is_output) outputs[t.info->name] = std::move(bytes);
    }
    if (workspace_) workspace_->download(&damage);
    if (damage) throw Stop{Verdict::kOutOfBoundsWrite, "wrote " + *damage};
    if (modified) throw Stop{Verdict::kInputModified, "changed " + *modified};
    return outputs;
  }

  // The first element of an input that is no longer what was uploaded.
  static std::optional<std::string> difference(const CaseTensor& t,
                                               const std::vector<std::byte>& now) {
    const auto before = narrow(t.input, t.dtype);
    const auto found = std::mismatch(before.begin(), before.end(), now.begin()).first;
    if (found == before.end()) return std::nullopt;
    const size_t element = static_cast<size_t>(found - before.begin()) / size_of(t.dtype);
    return fmt::format("input {}[{}]", t.info->name, place(t.shape, element));
  }

  const Problem& problem_;
  std::vector<ArenaTensor> tensors_;
  std::optional<ArenaTensor> workspace_;
  Bound bound_;
};

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
                             place(t.shape, first_unwritten), unwritten, a.size() / size)};
    if (different > 0)
      throw Stop{
          Verdict::kNondeterministic,
          fmt::format("two runs on the same inputs, over different old contents of outputs "
                      "and workspace, differ at {}[{}]; {} of {} elements",
                      t.info->name, place(t.shape, first_different), different, a.size() / size)};
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
  Placed placed(problem);
  double second_seconds = 0;
  const OutputBytes first = placed.run(0, &result->seconds);
  const auto expected = run_oracle(problem);
  judge(problem, expected, first, result);
  if (!save_folder.empty()) save_case(save_folder, problem, expected, first, *result);
  const OutputBytes second = placed.run(1, &second_seconds);
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
  const auto end_with = [&](Verdict verdict, const std::string& reason) {
    result.verdict = verdict;
    result.reason = reason;
  };
  try {
    const Problem problem = make_problem(c);
    run_problem(problem, save_folder, &result);
  } catch (const Stop& stop) {
    end_with(stop.verdict, stop.reason);
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
  return result;
}

TraceResult trace_case(const Case& c) {
  TraceResult trace;
  trace.c = c;
  try {
    const Problem problem = make_problem(c);
    if (!supports(problem)) throw Stop{Verdict::kUnsupported, "not built for this dtype"};
    Placed placed(problem);
    double seconds = 0;
    placed.run(0, &seconds);
    trace.kernels = executor_counters();
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
