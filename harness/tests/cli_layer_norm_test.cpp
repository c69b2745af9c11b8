// SPDX-License-Identifier: Apache-2.0
// Cases with which a soak found layer_norm's mean off by a rounding that its variance felt. None of
// them has a shape of the checks.
#include <gtest/gtest.h>

#include "harness/tests/run_program.h"

namespace tigon {
namespace {

TEST(LayerNorm, variance_does_not_feel_the_rounding_of_the_mean) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {"check", "--out", folder.path().string()};
  for (const char* id :
       {"f32/T=126,H=2,w=absent,inputs=far,seed=200117,shift=1",
        "f32/T=6,H=7,inputs=largest_rows,seed=200763", "f32/T=2,H=7,inputs=constant,seed=42",
        "bf16/T=2,H=7,inputs=constant,seed=42", "f16/T=2,H=7,inputs=constant,seed=42"}) {
    arguments.push_back("--case");
    arguments.push_back(std::string("layer_norm/forward/fused/") + id);
  }
  const ProgramRun run = run_tigon(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

}  // namespace
}  // namespace tigon
