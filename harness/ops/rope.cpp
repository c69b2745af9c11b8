// SPDX-License-Identifier: Apache-2.0
// Contract of rope.
#include "reference/rope.h"

#include <fmt/format.h>

#include "harness/ops/implementations.h"
#include "harness/ops/input_sets.h"
#include "harness/ops/rope_properties.h"
#include "harness/spec/bind.h"

namespace tigon::rope {

namespace {

InputSet inputs(const char* name, const char* heads, std::map<std::string, double> parameters) {
  InputSet set{name,
               {{"cos", "rotary_cos"}, {"sin", "rotary_sin"}, {"positions", "positions", {}, T}}};
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

const OptionSet kInterleaved = {{"pairing", "interleaved"}};
const OptionSet kPartial = {{"rotary", "8"}};
const OptionSet kPositions = {{"positions", "given"}};
const OptionSet kSections = {{"positions", "given"}, {"height", "3"}, {"width", "2"}};
const OptionSet kOtherSections = {
    {"positions", "given"}, {"height", "1"}, {"width", "2"}, {"sections", "interleaved"}};

// Results elsewhere, in either pass.
OptionSet out_of_place(OptionSet set) {
  for (const char* tensor : {"q_out", "k_out", "dq_out", "dk_out"}) set[tensor] = "given";
  return set;
}

std::vector<OptionSet> option_sets() {
  return {{},
          kInterleaved,
          kPartial,
          {{"rotary", "2"}},                               // one pair
          {{"rotary", "16"}, {"pairing", "interleaved"}},  // in vectors
          kPositions,
          kSections,
          kOtherSections,
          out_of_place({}),
          out_of_place({{"rotary", "6"}}),
          out_of_place({{"rotary", "16"}}),
          {{"positions", "given"},
           {"rotary", "12"},
           {"pairing", "interleaved"},
           {"height", "2"},
           {"width", "1"},
           {"sections", "interleaved"},
           {"q_out", "given"},
           {"dk_out", "given"}}};
}

// The columns of a head that are rotated.
double rotary_of(const Binding& b) { return b.at("rotary") > 0 ? b.at("rotary") : b.at("D"); }

int64_t partner_of(const Binding& options, int64_t columns, int64_t column) {
  const auto rotary = static_cast<int64_t>(options.at("rotary"));
  const int64_t rotated = rotary > 0 ? rotary : columns;
  if (column >= rotated) return column;
  const bool interleaved = options.at("pairing") == static_cast<double>(Pairing::kInterleaved);
  return interleaved ? column ^ 1 : (column + rotated / 2) % rotated;
}

// Columns that are not rotated stay where they are, or are copied.
Expr bytes_of(const std::string& q_out, const std::string& k_out) {
  return {fmt::format("2*T*(Q*({} ? D : R)+K*({} ? D : R))*elem+4*T*R+(positions ? 8*P*T : 0)",
                      q_out, k_out),
          [=](const Binding& b) {
            const auto moved = [&](const std::string& out) {
              return b.at(out) != 0 ? b.at("D") : rotary_of(b);
            };
            const double heads = b.at("Q") * moved(q_out) + b.at("K") * moved(k_out);
            const double positions = b.at("positions") * 8 * Expr(streams())(b);
            return b.at("T") * (2 * b.at("elem") * heads + 4 * rotary_of(b) + positions);
          }};
}

const Expr kFlops{"3*T*(Q+K)*R", [](const Binding& b) {
                    return 3 * b.at("T") * (b.at("Q") + b.at("K")) * rotary_of(b);
                  }};

// Promises of both passes, whose tensors are q and k of this name.
std::vector<Property> both_passes(const std::string& q, const std::string& k) {
  const Angles angles{"cos", "sin"};
  return {row_independence("T"),
          dtype_twin(),
          with_options({{}, kInterleaved, kPartial}, pair_norm({q, k}, partner_of)),
          composition({q, k}, angles, partner_of),
          relative_position(q, k),
          neutral_rotary(),
          neutral_positions(),
          with_options({kPositions, kSections, kOtherSections}, gathered_angles()),
          with_options({kPositions, kSections, kOtherSections}, positions_without_a_row()),
          with_options({{}, kPartial, {{"rotary", "16"}, {"pairing", "interleaved"}}, kPositions},
                       outputs_elsewhere({{q, q + "_out"}, {k, k + "_out"}}))};
}

// Columns that are no pairs of a head, and sections without positions or without room.
std::vector<OptionSet> refused() {
  return {{{"rotary", "3"}},
          {{"rotary", "-2"}},
          {{"rotary", "1024"}},
          {{"height", "1"}},
          {{"width", "1"}},
          {{"positions", "given"}, {"height", "-1"}},
          {{"positions", "given"}, {"width", "-1"}},
          {{"positions", "given"}, {"height", "512"}},
          {{"positions", "given"}, {"width", "512"}, {"sections", "interleaved"}},
          // One more than the 40 pairs of the property's case have room for.
          {{"positions", "given"}, {"height", "20"}, {"width", "21"}},
          {{"positions", "given"}, {"height", "14"}, {"sections", "interleaved"}},
          {{"positions", "given"}, {"width", "14"}, {"sections", "interleaved"}}};
}

// As many pairs as 8 have room for.
std::vector<OptionSet> edges() {
  OptionSet all = {{"positions", "given"}, {"rotary", "16"}, {"height", "5"}, {"width", "3"}};
  OptionSet thirds = all;
  thirds["height"] = "3", thirds["width"] = "2", thirds["sections"] = "interleaved";
  return {all, thirds};
}

std::vector<Property> with(std::vector<Property> all, std::vector<Property> more) {
  for (Property& p : more) all.push_back(std::move(p));
  return all;
}

}  // namespace

OpSpec contract() {
  const std::vector<OptionSet> rotations = {{}, kInterleaved, kPartial, kSections};
  return {
      .name = "rope",
      .summary = kFormula,
      .model_part = kRotaryPart,
      .axes = {{.axis = T,
                .tiny = {1, 3},
                .check = {0, 1, 2, 33, 129},
                .sweep = {1024, 4096, 16384},
                .host_sweep = {16, 128},
                .huge = {525000},
                .refused = {-1},
                .most = 1 << 29},
               {.axis = Q,
                .tiny = {2},
                .check = {1, 3, 8, 32, 0},
                .sweep = {32},
                .host_sweep = {8},
                .huge = {32},
                .model_size = ModelSize::kHeads,
                .refused = {-1},
                .middle = 8},
               {.axis = K,
                .tiny = {1},
                .check = {0, 1, 2, 8},
                .sweep = {8},
                .host_sweep = {2},
                .huge = {8},
                .model_size = ModelSize::kKvHeads,
                .refused = {-1},
                .middle = 2},
               {.axis = D,
                .tiny = {2, 16},
                .check = {2, 6, 64, 80, 128, 256},
                .sweep = {64, 128},
                .host_sweep = {64, 128},
                .huge = {128},
                .model_size = ModelSize::kRotary,
                .refused = {-1, 0, 1, 3, 65}}},
      .inputs = all_inputs(),
      .option_sets = option_sets(),
      .further_options = {kInterleaved, {{"rotary", "8"}}},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::rope::forward(a); }),
                   .scale = oracle<Forward>([](auto& a) { reference::rope::forward_scale(a); }),
                   .implementations = {fused<Forward>(), rounding(3, naive_chain<Forward>())},
                   .budget = {{"q", {}}, {"k", {}}, {"q_out", {}}, {"k_out", {}}},
                   .flops = kFlops,
                   .bytes = bytes_of("q_out", "k_out"),
                   .refused = refused(),
                   .edges = edges(),
                   .properties = with(both_passes("q", "k"), {linearity({"q", "k"}, {"q", "k"})})}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::rope::backward(a); }),
                   .scale = oracle<Backward>([](auto& a) { reference::rope::backward_scale(a); }),
                   .implementations = {fused<Backward>(), rounding(3, naive_chain<Backward>())},
                   .budget = {{"dq", {}}, {"dk", {}}, {"dq_out", {}}, {"dk_out", {}}},
                   .flops = kFlops,
                   .bytes = bytes_of("dq_out", "dk_out"),
                   .refused = refused(),
                   .edges = edges(),
                   .properties =
                       with(
                           both_passes("dq", "dk"),
                           {scaling("gradient_scaling",
                                    {{"dq", 1}, {"dk", 1}}, {{"dq", 1}, {"dk", 1}}, {}, true),
                            with_options(
                                rotations,
                                same_as_pass("negated_angle", "forward", {{"dq", "q"}, {"dk", "k"}},
                                             {"sin"})),
                            with_options(
                                rotations,
                                inverts_pass("inverse", "forward", {{"dq", "q"}, {"dk", "k"}},
                                             partner_of))})}),
          },
  };
}

}  // namespace tigon::rope
