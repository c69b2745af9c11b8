// SPDX-License-Identifier: Apache-2.0
// Properties of options and of dtypes.
#include <fmt/format.h>

#include <algorithm>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

Call varied(Experiment& e, const Variant& variant) {
  Call call = e.base();
  for (const auto& [name, value] : variant.options) call.options[name] = value;
  for (const auto& [symbol, size] : variant.axes) call.axes[symbol] = size;
  // Which inputs there are, and their sizes, depend on options, too.
  if (!variant.options.empty() || !variant.axes.empty()) call = e.generated(call, 0);
  for (const auto& [name, value] : variant.fill) {
    auto& values = call.inputs.at(name).values;
    std::fill(values.begin(), values.end(), value);
  }
  return call;
}

std::string text_of(const Variant& v) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? "with " : ",", name, value);
  };
  for (const auto& [name, value] : v.options) add(name, value);
  for (const auto& [name, value] : v.fill) add(name, fmt::format("{:g}", value));
  for (const auto& [symbol, size] : v.axes) add(symbol, fmt::format("{}", size));
  return text.empty() ? "as the case is" : text;
}

}  // namespace

Property same_results(std::string name, Variant one, Variant other,
                      std::vector<std::string> bitwise) {
  const auto check = [=](Experiment& e) {
    const Call first = varied(e, one), second = varied(e, other);
    const HostTensors a = e.run(first), b = e.run(second);
    const auto first_budgets = e.budgets(first), second_budgets = e.budgets(second);
    int compared = 0;
    for (const auto& [output, want] : a) {
      const auto got = b.find(output);
      if (got == b.end() || got->second.shape != want.shape) continue;
      ++compared;
      const bool exact =
          std::count(bitwise.begin(), bitwise.end(), output) > 0 || bitwise == kAllOutputs;
      if (exact)
        expect_same(output, got->second, want, text_of(other), text_of(one));
      else
        expect_close(output, got->second, want,
                     sum(first_budgets.at(output), second_budgets.at(output)), text_of(other),
                     text_of(one));
    }
    if (compared == 0) throw std::logic_error(name + ": no output that both calls have");
  };
  return {name, fmt::format("the same results {} and {}", text_of(one), text_of(other)), check};
}

Property dtype_twin() {
  const auto check = [](Experiment& e) {
    Call twin = e.base();
    twin.dtype = DType::kF32;
    const HostTensors exact = e.run(twin);
    const auto budgets = e.budgets(e.base()), twin_budgets = e.budgets(twin);
    for (const auto& [name, tensor] : e.base_outputs())
      expect_close(name, tensor, exact.at(name), sum(budgets.at(name), twin_budgets.at(name)),
                   fmt::format("in {}", name_of(e.base().dtype)), "in f32 on the same values");
  };
  return for_policies(
      {DType::kBF16, DType::kF16},
      {"dtype_twin", "a 16-bit call agrees with one in f32 on the same values", check});
}

Property bounded_workspace(std::string option, int64_t tensors, std::vector<Axes> sizes) {
  constexpr int64_t kBytes[] = {int64_t{1} << 29, int64_t{1} << 30};
  Property property;
  property.name = "bounded_workspace";
  property.statement = fmt::format(
      "a workspace grows with {}, by no more than {} of it and an eighth", option, tensors);
  property.check = [=](Experiment& e) {
    const auto workspace = [&](Call call, int64_t bytes) {
      call.options[option] = fmt::format("{}", bytes);
      return static_cast<int64_t>(e.placed(call).scratch.bytes);
    };
    for (const OptionSet& options : e.option_sets())
      for (const Axes& axes : sizes) {
        Call call = e.base();
        call.options = options;
        for (const auto& [axis, size] : axes) call.axes[axis] = size;
        const int64_t least = workspace(call, 1);
        int64_t with_fewer = least;
        for (const int64_t bytes : kBytes) {
          const int64_t got = workspace(call, bytes);
          if (got > least + tensors * bytes + bytes / 8)
            throw Violation(fmt::format("{} bytes of workspace with {}={}, {} with {}=1: {} more",
                                        got, option, bytes, least, option, got - least));
          if (got < with_fewer)
            throw Violation(fmt::format("{} bytes of workspace with {}={}, {} with fewer", got,
                                        option, bytes, with_fewer));
          with_fewer = got;
        }
      }
  };
  property.one_shape = property.of_launcher = true;
  property.policies = {DType::kF32};  // what products take beside is the least here
  return property;
}

}  // namespace tigon
