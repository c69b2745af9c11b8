// SPDX-License-Identifier: Apache-2.0
// Scaling by powers of two, which is exact.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

using Exponents = std::map<std::string, int>;

int exponent_of(const Exponents& exponents, const std::string& name) {
  const auto found = exponents.find(name);
  return found == exponents.end() ? 0 : found->second;
}

double smallest_normal(DType t) { return smallest_subnormal(t) / (2 * unit_roundoff(t)); }

// Products with the factors must be exact in f16 too: no value is near its subnormal range.
constexpr double kLeast = 0x1p-8;

Call without_small_values(Call call, const Exponents& inputs) {
  for (auto& [name, tensor] : call.inputs)
    if (exponent_of(inputs, name) != 0)
      for (double& v : tensor.values)
        if (std::abs(v) < kLeast) v = 0;
  return call;
}

void scale(double factor, HostTensor* tensor) {
  for (double& v : tensor->values) v *= factor;
}

// Bits are lost where a value is below the normal range of the type, or was rounded up to its
// smallest number, and everywhere beyond it.
void expect_scaled(const std::string& name, const HostTensor& got, const HostTensor& base,
                   double factor, const std::string& when) {
  HostTensor want = base;
  scale(factor, &want);
  std::vector<double> allowed(want.values.size());
  const double normal = smallest_normal(base.dtype), step = smallest_subnormal(base.dtype);
  for (size_t i = 0; i < allowed.size(); ++i)
    if (std::abs(base.values[i]) <= normal || std::abs(want.values[i]) <= normal)
      allowed[i] = step * (1 + std::abs(factor));
  expect_close(name, got, want, allowed, when, "scaled from the unscaled result");
}

}  // namespace

Property scaling(std::string name, Exponents inputs, Exponents outputs, Exponents options,
                 bool negative) {
  const auto check = [=](Experiment& e) {
    const Call base = without_small_values(e.base(), inputs);
    const HostTensors unscaled = e.run(base);
    std::vector<double> factors = {8, 0.25};
    if (negative) factors.push_back(-1);
    for (const double factor : factors) {
      Call call = base;
      for (auto& [tensor, values] : call.inputs)
        scale(std::pow(factor, exponent_of(inputs, tensor)), &values);
      for (const auto& [option, exponent] : options)
        call.options[option] =
            fmt::format("{}", e.option(base, option) * std::pow(factor, exponent));
      const HostTensors scaled = e.run(call);
      for (const auto& [tensor, values] : unscaled)
        expect_scaled(tensor, scaled.at(tensor), values,
                      std::pow(factor, exponent_of(outputs, tensor)),
                      fmt::format("with inputs times {:g}", factor));
    }
  };
  std::string statement = "f a power of two:";
  const auto list = [&](const char* what, const Exponents& exponents) {
    for (const auto& [tensor, e] : exponents)
      statement += fmt::format(" {}{}*f^{}", what, tensor, e);
  };
  list("", inputs);
  list("", options);
  statement += outputs.empty() ? " changes nothing," : " gives";
  list("", outputs);
  statement += outputs.empty() ? " bitwise" : " bitwise, the rest unchanged";
  return {std::move(name), std::move(statement), check};
}

Property gradient_scaling(std::string gradient, const std::vector<std::string>& outputs) {
  Exponents scaled;
  for (const std::string& name : outputs) scaled[name] = 1;
  return scaling("gradient_scaling", {{gradient, 1}}, scaled, {}, true);
}

Property linearity(const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) {
  Exponents in, out;
  for (const std::string& name : inputs) in[name] = 1;
  for (const std::string& name : outputs) out[name] = 1;
  return scaling("linearity", in, out, {}, true);
}

// ---- modifiers ----------------------------------------------------------------------------------

Property with_options(std::vector<OptionSet> options, Property property) {
  property.options = std::move(options);
  return property;
}

Property on_inputs(std::string input_set, Property property) {
  property.inputs = std::move(input_set);
  return property;
}

Property for_policies(std::vector<DType> policies, Property property) {
  property.policies = std::move(policies);
  return property;
}

Property also_naive(Property property) {
  property.naive = true;
  return property;
}

}  // namespace tigon
