// SPDX-License-Identifier: Apache-2.0
// Contract of geglu.
#include "reference/geglu.h"

#include "harness/ops/gated_plan.h"
#include "harness/ops/implementations.h"

namespace tigon::geglu {

namespace {

// Of the tanh form and of the exact one.
Property of_both(Property property) {
  return with_options({{}, {{"approximate", "none"}}}, std::move(property));
}

constexpr double kLargest = 1.6e38;  // a float holds its product with every gate_multiplier below

const OptionSet kExact = {{"approximate", "none"}};

std::vector<OptionSet> option_sets() {
  std::vector<OptionSet> sets = gated_option_sets();
  sets.push_back(kExact);
  sets.push_back({{"approximate", "none"}, {"layout", "gate_first"}, {"gate_multiplier", "2"}});
  return sets;
}

}  // namespace

OpSpec contract() {
  constexpr double kNormal = 40;  // exp, a quotient and their argument, in roundings of fp32
  return {
      .name = "geglu",
      .summary = kFormula,
      .model_part = "geglu",
      .axes = {{.axis = T,
                .tiny = {1, 3},
                .check = {0, 1, 2, 31, 33, 129},
                .sweep = {1024, 4096, 16384},
                .host_sweep = {16, 64, 256},
                .huge = {525000},
                .refused = {-1},
                .most = kAnySize},
               {.axis = F,
                .tiny = {1, 8, 33},
                .check = {1, 2, 7, 8, 9, 127, 1023, 4099, 5632},
                .sweep = {5632, 14336},
                .host_sweep = {688, 2816},
                .huge = {4096},
                .model_size = ModelSize::kIntermediate,
                .most = kAnySize}},
      .inputs = gated_inputs(kLargest),
      .option_sets = option_sets(),
      .further_options = {kMultiplied, kExact, together(kExact, kMultiplied)},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::geglu::forward(a); }),
                   .scale = oracle<Forward>([](auto& a) { reference::geglu::forward_scale(a); }),
                   .implementations = {fused<Forward>(), naive_chain<Forward>()},
                   .budget = {{"y", {.elementary = kNormal}}},
                   .flops = 9 * Expr(T) * F,
                   .properties = {of_both(row_independence("T")), of_both(linearity({"b"}, {"y"})),
                                  of_both(down_multiplier({{"y", 1}})),
                                  of_both(gate_multiplier({})), of_both(dtype_twin())}}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::geglu::backward(a); }),
                   .scale = oracle<Backward>([](auto& a) { reference::geglu::backward_scale(a); }),
                   .implementations = {fused<Backward>(), naive_chain<Backward>()},
                   .budget = {{"da", {.elementary = kNormal}}, {"db", {.elementary = kNormal}}},
                   .flops = 18 * Expr(T) * F,
                   .properties = {of_both(row_independence("T")), of_both(linearity({"b"}, {"da"})),
                                  of_both(gradient_scaling("dy", {"da", "db"})),
                                  of_both(dtype_twin()),
                                  of_both(down_multiplier({{"da", 1}, {"db", 1}})),
                                  of_both(gate_multiplier({{"da", 1}})),
                                  of_all_layouts(in_place())}}),
          },
  };
}

}  // namespace tigon::geglu
