// SPDX-License-Identifier: Apache-2.0
// One timed call of a plug-in beside the oracle.
#include "harness/plugin/judge_sample.h"

#include <algorithm>
#include <numeric>

#include "harness/judge/compare.h"
#include "harness/run/check.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/memory/convert.h"
#include "harness/run/memory/tiled_tensor.h"

namespace tigon::plugin {

namespace {

// The oracle and the comparison then take some seconds, and where nothing can be left out a minute
// or two.
constexpr double kSampledBytes = 3e7, kMostBytes = 2e9, kMostFlop = 2e9;

// Sums over rows, and what a mean divides by, need all of them.
bool rows_stand_alone(const Case& c, const OpSpec& op, const Pass& pass) {
  const Binding binding = binding_of(c, op, pass);
  const auto is_sum = [&](const TensorInfo& info) {
    return info.role != Role::kIn && !is_left_out(info, c.options) &&
           !has_rows(info, binding, op.axes.front().axis.symbol);
  };
  return op.huge_options.empty() &&
         std::any_of(pass.properties.begin(), pass.properties.end(),
                     [](const Property& p) { return p.name == "row_independence"; }) &&
         std::none_of(pass.tensors.begin(), pass.tensors.end(), is_sum);
}

// Row numbers, ascending.
std::vector<int64_t> choose_rows(int64_t count, int64_t of, std::mt19937_64* random) {
  std::vector<int64_t> all(static_cast<size_t>(of)), chosen;
  std::iota(all.begin(), all.end(), 0);
  std::sample(all.begin(), all.end(), std::back_inserter(chosen), count, *random);
  return chosen;
}

std::vector<double> values_of(const std::vector<char>& bytes, DType dtype) {
  return widen(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size() / size_of(dtype),
               dtype);
}

std::vector<char> rows_of(const std::vector<char>& bytes, const std::vector<int64_t>& rows,
                          int64_t of) {
  const auto size = static_cast<int64_t>(bytes.size()) / of;
  std::vector<char> some;
  for (const int64_t row : rows)
    some.insert(some.end(), bytes.begin() + row * size, bytes.begin() + (row + 1) * size);
  return some;
}

}  // namespace

int64_t rows_judged(const Case& c) {
  const OpSpec& op = *find_op(c.op);
  const int64_t rows = c.axes.at(op.axes.front().axis.symbol);
  const bool sampled = rows_stand_alone(c, op, *find_pass(op, c.pass));
  const double part =
      std::min((sampled ? kSampledBytes : kMostBytes) / minimum_bytes(c), kMostFlop / flops_of(c));
  if (part >= 1) return rows;
  return sampled ? std::max<int64_t>(1, static_cast<int64_t>(part * static_cast<double>(rows))) : 0;
}

std::string judge_sample(const Case& c, const TimedKernel::Sample& sample, int64_t rows,
                         std::mt19937_64* random) {
  const OpSpec& op = *find_op(c.op);
  const Pass& pass = *find_pass(op, c.pass);
  const std::string& axis = op.axes.front().axis.symbol;
  const int64_t all = c.axes.at(axis);
  const std::vector<int64_t> chosen = choose_rows(rows, all, random);
  const Binding binding = binding_of(c, op, pass);
  const auto chosen_values = [&](const TensorInfo& info, const std::vector<char>& bytes) {
    return values_of(has_rows(info, binding, axis) ? rows_of(bytes, chosen, all) : bytes,
                     info.dtype.at(c.dtype));
  };
  std::map<std::string, std::vector<double>> inputs;
  for (const TensorInfo& info : pass.tensors)
    if (const auto found = sample.inputs.find(info.name); found != sample.inputs.end())
      inputs[info.name] = chosen_values(info, found->second);
  Case judged = c;
  judged.axes[axis] = rows;
  const Problem problem = make_problem(judged, inputs);
  const auto expected = run_oracle(problem);
  for (const CaseTensor& t : problem.tensors) {
    if (!t.is_output) continue;
    const Comparison compared =
        compare(t.info->name, chosen_values(*t.info, sample.outputs.at(t.info->name)),
                expected.at(t.info->name), t.shape, budget_of(problem, t));
    if (compared.verdict != Verdict::kPassed) return compared.reason;
  }
  return "";
}

}  // namespace tigon::plugin
