// Contract of swiglu.
#include "reference/swiglu.h"

#include "harness/ops/input_sets.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"
#include "reference/naive/swiglu.h"

namespace tigon::swiglu {

namespace {

// U: a chain stores silu(a), dy b and the like before it multiplies the other factors.
template <class Args>
void forward_underflow(const Args& args) {
  reference::array(args.y) = reference::array(args.b).abs();
}
template <class Args>
void backward_underflow(const Args& args) {
  const auto dy = reference::array(args.dy).abs() + 1, b = reference::array(args.b).abs() + 1;
  reference::array(args.da) = dy * b;
  reference::array(args.db) = dy;
}

std::vector<InputSet> all_inputs() {
  std::vector<InputSet> sets = {{"normal", {{"a", "normal"}}},
                                {"wide", {{"a", "normal", {{"scale", 8}}}}},
                                {"saturated", {{"a", "normal", {{"scale", 60}}}}},
                                {"mixed_rows", {{"a", "mixed_rows"}, {"b", "mixed_rows"}}}};
  add_special_rows(&sets, {"a", "b"});
  add_nonfinite(&sets, {"a"});
  add_upstream(&sets, {"dy"});
  return sets;
}

}  // namespace

OpSpec contract() {
  constexpr auto policies = types<F32, BF16, F16>;
  constexpr double kSigmoid = 40;  // exp, a quotient and their argument, in roundings of fp32
  return {
      .name = "swiglu",
      .summary = "y = silu(a) * b, silu(a) = a * sigmoid(a)",
      .axes = {{.axis = T,
                .tiny = {1, 3},
                .check = {0, 1, 2, 31, 33, 129},
                .sweep = {1024, 4096, 16384},
                .host_sweep = {16, 64, 256},
                .huge = {525000}},
               {.axis = F,
                .tiny = {1, 8, 33},
                .check = {1, 2, 7, 8, 9, 127, 1023, 4099, 5632},
                .sweep = {5632, 14336},
                .host_sweep = {688, 2816},
                .huge = {4096}}},
      .inputs = all_inputs(),
      .option_sets = {{}},
      .policies = dtypes_of(policies),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::swiglu::forward(a); }),
                   .scale = oracle<Forward>([](auto& a) { reference::swiglu::forward_scale(a); }),
                   .underflow = oracle<Forward>([](auto& a) { forward_underflow(a); }),
                   .implementations =
                       {impl<Forward>("fused", policies, [](auto& a, Stream s) { return forward(a, s); }),
                        rounding(3, impl<Forward>("naive", policies,
                                                  [](auto& a, Stream s) {
                                                    return naive::swiglu::forward(a, s);
                                                  }))},
                   .budget = {{"y", {.elementary = kSigmoid}}},
                   .flops = 5 * Expr(T) * F,
                   .strided = {"a", "b", "y"},
                   .properties = {row_independence("T"), linearity({"b"}, {"y"}), dtype_twin()}}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::swiglu::backward(a); }),
                   .scale = oracle<Backward>([](auto& a) { reference::swiglu::backward_scale(a); }),
                   .underflow = oracle<Backward>([](auto& a) { backward_underflow(a); }),
                   .implementations =
                       {impl<Backward>("fused", policies,
                                       [](auto& a, Stream s) { return backward(a, s); }),
                        rounding(6, impl<Backward>("naive", policies,
                                                   [](auto& a, Stream s) {
                                                     return naive::swiglu::backward(a, s);
                                                   }))},
                   .budget = {{"da", {.elementary = kSigmoid}}, {"db", {.elementary = kSigmoid}}},
                   .flops = 12 * Expr(T) * F,
                   .strided = {"dy", "a", "b", "da", "db"},
                   .properties = {row_independence("T"), linearity({"b"}, {"da"}),
                                  gradient_scaling("dy", {"da", "db"}), dtype_twin(),
                                  in_place({{"da", "a"}, {"db", "b"}})}}),
          },
  };
}

}  // namespace tigon::swiglu
