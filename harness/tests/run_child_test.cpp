// SPDX-License-Identifier: Apache-2.0
// Which program runs the cases of an executor.
#include <gtest/gtest.h>

#include "harness/run/executor.h"
#include "harness/run/process/child.h"

namespace tigon {
namespace {

#if defined(TIGON_CUDA) || defined(__SANITIZE_ADDRESS__)
constexpr bool kCanCheck = false;
#else
constexpr bool kCanCheck = true;
#endif

TEST(Child, is_this_program_and_checks_on_the_host_but_not_under_sanitizers) {
  EXPECT_EQ(program_of(this_executor()), "/proc/self/exe");
  EXPECT_EQ(executor_can_check(), kCanCheck);
  try {
    EXPECT_EQ(program_of("checked"), "/proc/self/exe");
    EXPECT_TRUE(kCanCheck);
  } catch (const UsageError& error) {
    EXPECT_FALSE(kCanCheck);
    EXPECT_NE(std::string(error.what()).find("this build has none"), std::string::npos);
  }
}

}  // namespace
}  // namespace tigon
