// Contract of rope.
#include "reference/rope.h"

#include "harness/ops/input_sets.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"
#include "reference/naive/rope.h"

namespace tigon::rope {

namespace {

InputSet inputs(const char* name, const char* heads, std::map<std::string, double> parameters) {
  InputSet set{name, {{"cos", "rotary_cos"}, {"sin", "rotary_sin"}}};
  for (const char* tensor : {"q", "k", "dq", "dk"})
    set.plans.push_back({tensor, heads, parameters});
  return set;
}

std::vector<InputSet> all_inputs() {
  std::vector<InputSet> sets = {inputs("normal", "normal", {}),
                                inputs("outliers", "outliers", {{"factor", 1000}}),
                                inputs("mixed_rows", "mixed_rows", {})};
  const std::vector<std::string> heads = {"q", "k", "dq", "dk"};
  add_special_rows(&sets, heads);
  add_nonfinite(&sets, heads);
  return sets;
}

}  // namespace

OpSpec contract() {
  const Angles kAngles{"cos", "sin"};
  constexpr auto policies = types<F32, BF16, F16>;
  return {
      .name = "rope",
      .summary = "x1' = x1 cos - x2 sin, x2' = x2 cos + x1 sin; backward turns the other way",
      .axes = {{.axis = T,
                .tiny = {1, 3},
                .check = {0, 1, 2, 33, 129},
                .sweep = {1024, 4096, 16384},
                .host_sweep = {16, 128},
                .huge = {525000}},
               {.axis = Q,
                .tiny = {2},
                .check = {1, 3, 8, 32},
                .sweep = {32},
                .host_sweep = {8},
                .huge = {32}},
               {.axis = K,
                .tiny = {1},
                .check = {1, 2, 8},
                .sweep = {8},
                .host_sweep = {2},
                .huge = {8}},
               {.axis = D,
                .tiny = {2, 16},
                .check = {2, 6, 64, 80, 128, 256},
                .sweep = {64, 128},
                .host_sweep = {64, 128},
                .huge = {128}}},
      .inputs = all_inputs(),
      .option_sets = {{}},
      .policies = dtypes_of(policies),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::rope::forward(a); }),
                   .scale = oracle<Forward>([](auto& a) { reference::rope::forward_scale(a); }),
                   .implementations =
                       {impl<Forward>("fused", policies, [](auto& a, Stream s) { return forward(a, s); }),
                        rounding(3, impl<Forward>("naive", policies,
                                                  [](auto& a, Stream s) {
                                                    return naive::rope::forward(a, s);
                                                  }))},
                   .budget = {{"q", {}}, {"k", {}}},
                   .flops = 3 * Expr(T) * (Expr(Q) + K) * D,
                   .strided = {"q", "k"},
                   .properties = {row_independence("T"), linearity({"q", "k"}, {"q", "k"}), dtype_twin(),
                                  pair_norm({"q", "k"}), composition({"q", "k"}, kAngles),
                                  relative_position("q", "k")}}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::rope::backward(a); }),
                   .scale = oracle<Backward>([](auto& a) { reference::rope::backward_scale(a); }),
                   .implementations =
                       {impl<Backward>("fused", policies,
                                       [](auto& a, Stream s) { return backward(a, s); }),
                        rounding(3, impl<Backward>("naive", policies,
                                                   [](auto& a, Stream s) {
                                                     return naive::rope::backward(a, s);
                                                   }))},
                   .budget = {{"dq", {}}, {"dk", {}}},
                   .flops = 3 * Expr(T) * (Expr(Q) + K) * D,
                   .strided = {"dq", "dk"},
                   .properties = {row_independence("T"), 
                                  scaling("gradient_scaling", {{"dq", 1}, {"dk", 1}},
                                          {{"dq", 1}, {"dk", 1}}, {}, true),
                                  dtype_twin(), pair_norm({"dq", "dk"}),
                                  composition({"dq", "dk"}, kAngles),
                                  relative_position("dq", "dk"),
                                  same_as_pass("negated_angle", "forward", {{"dq", "q"}, {"dk", "k"}},
                                               {"sin"}),
                                  inverts_pass("inverse", "forward", {{"dq", "q"}, {"dk", "k"}})}}),
          },
  };
}

}  // namespace tigon::rope
