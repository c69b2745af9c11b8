// SPDX-License-Identifier: Apache-2.0
// Planned memory of a step is what a step allocates, and the searches find the edge.
#include "convergence/maxlen.h"

#include <gtest/gtest.h>

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
  const int64_t bytes = int64_t{64} << 20;
  for (const Side side : {Side::kNaive, Side::kFused}) {
    c.sequence = static_cast<int>(longest_sequence(c, DType::kBF16, side, bytes, 1));
    ASSERT_GT(c.sequence, 0);
    EXPECT_LE(planned_step(c, DType::kBF16, side).total(), bytes);
    ++c.sequence;
    EXPECT_GT(planned_step(c, DType::kBF16, side).total(), bytes);
    c.sequence = 64;
    c.batch = static_cast<int>(largest_batch(c, DType::kBF16, side, bytes, 1));
    EXPECT_LE(planned_step(c, DType::kBF16, side).total(), bytes);
    ++c.batch;
    EXPECT_GT(planned_step(c, DType::kBF16, side).total(), bytes);
    c.batch = 2;
  }
  EXPECT_EQ(longest_sequence(c, DType::kBF16, Side::kFused, 1000, 1), 0);
}

}  // namespace
}  // namespace tigon::convergence
