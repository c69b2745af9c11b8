// SPDX-License-Identifier: Apache-2.0
// Planned memory of a step is what a step allocates, and the searches find the edge.
#include "convergence/maxlen.h"

#include <gtest/gtest.h>

#include <random>

#include "convergence/parameter_layout.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {
namespace {

ModelConfig small(bool tied) {
  ModelConfig c = *find_config("tiny");
  c.sequence = 64;
  c.batch = 2;
  c.tied = tied;
  return c;
}

TEST(Maxlen, planned_is_what_a_step_allocates) {
  for (const bool tied : {false, true})
    for (const DType dtype : {DType::kF32, DType::kBF16})
      for (const Side side : {Side::kNaive, Side::kFused}) {
        const ModelConfig c = small(tied);
        const auto planned = static_cast<double>(planned_step(c, dtype, side).total());
        const auto measured = static_cast<double>(measured_step(c, dtype, side));
        // cuDNN takes workspaces of its own, which are not in the plan.
        const bool library = side == Side::kNaive && device_info().kind == "cuda";
        EXPECT_NEAR(measured / planned, 1, library ? 0.1 : 0.002)
            << name_of(dtype) << " " << name_of(side);
      }
}

TEST(Maxlen, what_is_found_fits_and_one_more_does_not) {
  ModelConfig c = small(false);
  for (const Side side : {Side::kNaive, Side::kFused}) {
    const int64_t bytes = 2 * planned_step(c, DType::kBF16, side).total();
    c.sequence = static_cast<int>(longest_sequence(c, DType::kBF16, side, bytes));
    ASSERT_GT(c.sequence, 64);
    EXPECT_LE(planned_step(c, DType::kBF16, side).total(), bytes);
    ++c.sequence;
    EXPECT_GT(planned_step(c, DType::kBF16, side).total(), bytes);
    c.sequence = 64;
    c.batch = static_cast<int>(largest_batch(c, DType::kBF16, side, bytes));
    ASSERT_GT(c.batch, 2);
    EXPECT_LE(planned_step(c, DType::kBF16, side).total(), bytes);
    ++c.batch;
    EXPECT_GT(planned_step(c, DType::kBF16, side).total(), bytes);
    c.batch = 2;
  }
  EXPECT_EQ(longest_sequence(c, DType::kBF16, Side::kFused, 1000), 0);
}

StepMemory fused_step(const ModelConfig& c, const Ranks& ranks) {
  return planned_step(c, DType::kBF16, Side::kFused, ranks);
}

int64_t elements(const ModelConfig& c) { return ParameterLayout(c).total; }

TEST(Ranks, fsdp2_divides_the_state_and_gathers_two_blocks_and_the_rest) {
  ModelConfig c = small(false), shallower = c;
  c.layers = 7;
  shallower.layers = 2;
  const StepMemory one = fused_step(c, {1}), four = fused_step(c, {4});
  EXPECT_EQ(one.gathered, 0);
  EXPECT_EQ(four.state, (one.state + 3) / 4);
  EXPECT_EQ(four.activations, one.activations);
  // In bf16, the parameters and their gradients.
  EXPECT_NEAR(static_cast<double>(four.gathered),
              2.0 * 2 * static_cast<double>(elements(shallower)),
              5 * 2 * 2 * 2 * 128);  // two norms of five layers, which end at multiples of 128
  EXPECT_EQ(four.total(), four.state + four.gathered + four.activations + four.transient);
}

TEST(Ranks, zero3_gathers_a_small_model_whole) {
  const ModelConfig c = small(true);
  EXPECT_EQ(fused_step(c, {8, Sharding::kZero3}).gathered, 2 * 2 * elements(c));
  EXPECT_EQ(fused_step(c, {8, Sharding::kZero3}).state, (fused_step(c, {}).state + 7) / 8);
}

TEST(Ranks, tensor_parallel_ones_have_parts_of_matrices_and_whole_norms) {
  const ModelConfig c = small(false);  // 4 heads of 2 for keys and values, 352 columns
  const ModelConfig half = config_of_rank(c, {2, Sharding::kTp});
  EXPECT_EQ(half.heads, 2);
  EXPECT_EQ(half.kv_heads, 1);
  EXPECT_EQ(half.head_size, c.head_size);
  EXPECT_EQ(half.hidden, c.hidden);
  EXPECT_EQ(half.intermediate, 176);
  EXPECT_EQ(half.vocabulary, c.vocabulary / 2);
  EXPECT_EQ(config_of_rank(c, {4, Sharding::kTp}).kv_heads, 1);  // two ranks have the same one
  const int64_t norms = (2 * c.layers + 1) * c.hidden;
  EXPECT_EQ(2 * elements(half) - norms, elements(c));
  const StepMemory planned = fused_step(c, {2, Sharding::kTp});
  EXPECT_EQ(planned.gathered, 0);
  EXPECT_EQ(planned.state, fused_step(half, {}).state);
  for (const int count : {3, 8, 64})
    EXPECT_THROW(config_of_rank(c, {count, Sharding::kTp}), ConvergeError) << count;
}

// Of models and numbers of ranks that are drawn.
TEST(Ranks, more_of_them_never_need_more_each) {
  std::mt19937 random(20261129);
  for (int i = 0; i < 20; ++i) {
    ModelConfig c = small(random() % 2 == 0);
    c.layers = 1 + static_cast<int>(random() % 12);
    c.hidden = 128 * (1 + static_cast<int>(random() % 4));
    c.vocabulary = 1000 + static_cast<int>(random() % 60000);
    c.heads = c.kv_heads = 16;
    c.head_size = c.hidden / 16;
    for (const Sharding sharding : {Sharding::kFsdp2, Sharding::kZero3, Sharding::kTp}) {
      int64_t before = fused_step(c, {2, sharding}).total();
      for (const int count : {4, 8, 16}) {
        const int64_t now = fused_step(c, {count, sharding}).total();
        EXPECT_LE(now, before) << c.layers << " " << c.hidden << " " << c.vocabulary << " "
                               << count;
        before = now;
      }
    }
  }
}

}  // namespace
}  // namespace tigon::convergence
