// SPDX-License-Identifier: Apache-2.0
// Faults planted in the fused side make the verdict on a training fail.
#include <gtest/gtest.h>

#include <cstdio>

#include "convergence/tests/faults.h"
#include "convergence/tests/small_runs.h"

namespace tigon::convergence {
namespace {

template <class P>
std::string judged(const Ops<P>& faulty) {
  const VerdictReport v = verdict_of(faulty);
  std::printf("%s\n", v.reason.c_str());
  return v.verdict;
}

class PlantedFault : public testing::Test {
 protected:
  const std::string kCaught = "incorrect_numerical";
};

// Each is hundreds of budgets away.
TEST_F(PlantedFault, EveryOneIsCaughtInF32) {
  using F = Faults<F32>;
  EXPECT_EQ(judged(F::wrong_normaliser()), kCaught);
  EXPECT_EQ(judged(F::missing_norm_gradient()), kCaught);
  EXPECT_EQ(judged(F::swapped_rotary_halves()), kCaught);
  EXPECT_EQ(judged(F::rotary_backward_turns_forward()), kCaught);
  EXPECT_EQ(judged(F::dropped_tail_row()), kCaught);
  EXPECT_EQ(judged(F::swapped_gate_gradients()), kCaught);
  EXPECT_EQ(judged(F::lost_last_chunk()), kCaught);
  EXPECT_EQ(judged(F::off_by_one_mean()), kCaught);
}

// What 40 steps of so small a model show through the noise of bf16.
TEST_F(PlantedFault, GrossOnesAreCaughtInBF16) {
  using F = Faults<BF16>;
  EXPECT_EQ(judged(F::wrong_normaliser()), kCaught);
  EXPECT_EQ(judged(F::swapped_gate_gradients()), kCaught);
  EXPECT_EQ(judged(F::off_by_one_mean()), kCaught);
}

}  // namespace
}  // namespace tigon::convergence
