// SPDX-License-Identifier: Apache-2.0
// Contract of swiglu.
#include "reference/swiglu.h"

#include "harness/ops/gated_plan.h"
#include "harness/ops/implementations.h"

namespace tigon::swiglu {

namespace {

// U: a chain stores silu(a), dy b and the like before it multiplies the other factors.
template <class Args>
void forward_underflow(const Args& args) {
  const auto up = reference::halves(args.a, args.b, args.layout).up;
  reference::array(args.y) = up.abs() * double(std::abs(args.down_multiplier));
}
template <class Args>
void backward_underflow(const Args& args) {
  const double g = std::abs(args.gate_multiplier), d = std::abs(args.down_multiplier);
  const reference::Rows<double> up = reference::halves(args.a, args.b, args.layout).up;
  const reference::Rows<double> dy = d * reference::array(args.dy).abs() + 1;
  const reference::Rows<double> da = g * dy * (up.abs() + 1);
  reference::swiglu::write_gradients(args, da, dy);
}

}  // namespace

OpSpec contract() {
  constexpr double kSigmoid = 40;  // exp, a quotient and their argument, in roundings of fp32
  return {
      .name = "swiglu",
      .summary = kFormula,
      .model_part = "swiglu",
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
      .inputs = gated_inputs(),
      .option_sets = gated_option_sets(),
      .further_options = {kMultiplied},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::swiglu::forward(a); }),
                   .scale = oracle<Forward>([](auto& a) { reference::swiglu::forward_scale(a); }),
                   .underflow = oracle<Forward>([](auto& a) { forward_underflow(a); }),
                   .implementations = {fused<Forward>(), rounding(3, naive_chain<Forward>())},
                   .budget = {{"y", {.elementary = kSigmoid}}},
                   .flops = 5 * Expr(T) * F,
                   .properties = {row_independence("T"), linearity({"b"}, {"y"}), dtype_twin(),
                                  down_multiplier({{"y", 1}}), gate_multiplier({})}}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::swiglu::backward(a); }),
                   .scale = oracle<Backward>([](auto& a) { reference::swiglu::backward_scale(a); }),
                   .underflow = oracle<Backward>([](auto& a) { backward_underflow(a); }),
                   .implementations = {fused<Backward>(), rounding(6, naive_chain<Backward>())},
                   .budget = {{"da", {.elementary = kSigmoid}}, {"db", {.elementary = kSigmoid}}},
                   .flops = 12 * Expr(T) * F,
                   .properties = {row_independence("T"), linearity({"b"}, {"da"}),
                                  gradient_scaling("dy", {"da", "db"}), dtype_twin(),
                                  down_multiplier({{"da", 1}, {"db", 1}}),
                                  gate_multiplier({{"da", 1}}), of_all_layouts(in_place())}}),
          },
  };
}

}  // namespace tigon::swiglu
