// SPDX-License-Identifier: Apache-2.0
// How far implementations are from the oracle.
#include "harness/peers/accuracy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/measure/memory_figures.h"
#include "harness/run/check.h"
#include "harness/run/memory/convert.h"
#include "harness/run/memory/device_case.h"

namespace tigon::peers {
namespace {

constexpr double kMostFlop = 1e9, kMostBytes = 1.3e7;
// What sizes keep of themselves: kernels choose by it, or refuse.
constexpr int64_t kLeastTokens = 16, kTileOfTokens = 128, kTile = 256;

// Half of it, but no less than what it shares with `aligned`, and a multiple of that.
int64_t halved(int64_t size, int64_t aligned) {
  const int64_t step = std::gcd(size, aligned);
  return std::max(step, size / 2 / step * step);
}

// Halves the tokens if they can be, else the largest size that can; false when none can.
bool halve_one(Case* c) {
  // Matrix products take tokens in tiles, other kernels one by one.
  const int64_t tokens = flops_of(*c) > kMostFlop ? kTileOfTokens : kLeastTokens;
  const std::string rows = find_op(c->op)->axes.front().axis.symbol;
  int64_t *largest = nullptr, smaller = 0;
  for (auto& [name, size] : c->axes) {
    const bool is_tokens = name == rows && size > kLeastTokens;
    const int64_t half = halved(size, is_tokens ? tokens : kTile);
    if (half >= size || (!is_tokens && largest != nullptr && size <= *largest)) continue;
    largest = &size;
    smaller = half;
    if (is_tokens) break;
  }
  if (largest != nullptr) *largest = smaller;
  return largest != nullptr;
}

double relative_l2(const std::vector<double>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return size > 0 ? std::sqrt(error / size) : std::sqrt(error);
}

}  // namespace

Case small_case(Case c) {
  while ((flops_of(c) > kMostFlop || minimum_bytes(c) > kMostBytes) && halve_one(&c)) {
  }
  return c;
}

Accuracy::Accuracy(Case c) {
  c.impl = find_pass(*find_op(c.op), c.pass)->implementations.front().name;
  problem_ = make_problem(small_case(c));
  expected_ = run_oracle(problem_);
}

Case Accuracy::named(const std::string& implementation) const {
  Case c = problem_.c;
  c.impl = implementation;
  return c;
}

Json Accuracy::compared(const std::string& implementation, const Outputs& outputs,
                        const std::string& executor) const {
  Json fields = without(implementation, "passed", "");
  fields["executor"] = executor;
  for (const CaseTensor& t : problem_.tensors) {
    const auto got = outputs.find(t.info->name);
    if (!t.is_output || got == outputs.end()) continue;
    const Expected& want = expected_.at(t.info->name);
    if (got->second.size() != want.value.size())
      return without(implementation, "incorrect_shape",
                     t.info->name + " has another number of elements than the oracle's");
    const Comparison compared =
        compare(t.info->name, got->second, want, t.shape, budget_of(problem_, t));
    fields["outputs"].push_back({{"name", t.info->name},
                                 {"relative_l2", relative_l2(got->second, want.value)},
                                 {"error_over_budget", compared.result.error_over_budget},
                                 {"largest_error", compared.result.largest_error}});
  }
  return fields;
}

Json Accuracy::without(const std::string& implementation, const std::string& verdict,
                       const std::string& reason) const {
  Json fields = case_fields(named(implementation));
  fields.update({{"inputs", problem_.c.inputs},
                 {"seed", problem_.c.seed},
                 {"executor", default_executor()},
                 {"verdict", verdict},
                 {"reason", reason},
                 {"outputs", Json::array()}});
  return fields;
}

Outputs outputs_of_ours(const Problem& problem) {
  DeviceCase on_device(problem);
  const OutputBytes packed = on_device.run(0);
  Outputs outputs;
  for (const CaseTensor& t : problem.tensors)
    if (t.is_output) {
      const std::vector<std::byte>& bytes = packed.at(t.info->name);
      outputs[t.info->name] = widen(bytes.data(), bytes.size() / size_of(t.dtype), t.dtype);
    }
  return outputs;
}

}  // namespace tigon::peers
