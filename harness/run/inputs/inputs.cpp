// SPDX-License-Identifier: Apache-2.0
// Test data from named distributions.
#include "harness/run/inputs/inputs.h"

#include <bit>
#include <stdexcept>

#include "harness/judge/verdict.h"
#include "harness/run/cases/case.h"
#include "harness/run/inputs/distributions.h"

namespace tigon {

double random_uniform(uint64_t key, uint64_t index) {
  return static_cast<double>(random_bits(key, index) >> 11) * 0x1p-53;
}

uint64_t random_bits(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t stream_key(uint64_t seed, const std::string& tensor) {
  return random_bits(stable_hash(tensor), seed);
}

double random_normal(uint64_t key, uint64_t index) {
  // Of 64 fair coins the number of heads has mean 32 and variance 16; a uniform variable, variance
  // 1/12, fills the gaps between integers.
  const int heads = std::popcount(random_bits(key, 2 * index));
  const double fraction = random_uniform(key, 2 * index + 1) - 0.5;
  constexpr double kInverseDeviation = 0.24935149047701480;  // 1 / sqrt(16 + 1/12)
  return (heads - 32 + fraction) * kInverseDeviation;
}

void fill(const InputPlan& plan, uint64_t seed, const std::vector<int64_t>& shape,
          const Binding& binding, std::vector<double>* values, DType dtype) {
  const Distribution* distribution = find_distribution(plan.distribution);
  if (!distribution)
    throw std::logic_error("no distribution '" + plan.distribution + "' for " + plan.tensor);
  int64_t size = 1;
  for (int64_t s : shape) size *= s;
  const int64_t columns = shape.empty() ? 1 : shape.back();
  FillContext context{plan,    seed,  stream_key(seed, plan.tensor),
                      binding, dtype, columns ? size / columns : 0,
                      columns};
  context.mean = context.parameter("mean", context.mean);
  context.scale = context.parameter("scale", context.scale);
  values->resize(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    (*values)[static_cast<size_t>(i)] = distribution->value(context, i / columns, i % columns);
}

const InputSet& input_set(const OpSpec& op, const std::string& name) {
  for (const InputSet& set : op.inputs)
    if (set.name == name) return set;
  throw UsageError(op.name + " has no inputs '" + name + "'");
}

QuickFill quick_fill(const InputPlan& plan, const Binding& binding) {
  const auto parameter = [&](const char* name, double otherwise) {
    const auto found = plan.parameters.find(name);
    return found == plan.parameters.end() ? otherwise : found->second;
  };
  QuickFill fill;
  if (plan.distribution == "normal") {
    fill.kind = QuickFill::kNormal;
    fill.mean = parameter("mean", 0);
    fill.scale = parameter("scale", 1);
  } else if (plan.distribution == "targets" && plan.parameters.count("invalid") == 0) {
    fill.kind = QuickFill::kIndices;
    fill.below = plan.below->integer(binding);
    fill.ignored = parameter("ignored", 0);
    const auto ignore = binding.find("ignore_index");
    if (ignore != binding.end()) fill.ignore_index = static_cast<int64_t>(ignore->second);
  }
  return fill;
}

InputPlan plan_of(const InputSet& set, const std::string& tensor) {
  for (const InputPlan& plan : set.plans)
    if (plan.tensor == tensor) return plan;
  return {tensor, "normal", {}};
}

}  // namespace tigon
