// SPDX-License-Identifier: Apache-2.0
// Empty calls are measured again before a plug-in's call is called too quick.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/plugin/overhead_again.h"

namespace tigon::plugin {
namespace {

// An empty call costs 10 at first, and `later` when it is measured again.
struct Kernel {
  double later, now = 10;
  int asked = 0;
  double overhead() const { return now; }
  void measure_overhead_again() {
    now = std::min(now, later);
    ++asked;
  }
};

TEST(OverheadAgain, a_call_stands_that_a_busy_machine_made_look_too_quick) {
  Kernel kernel{.later = 6};
  std::vector<double> seconds = {5, -2};
  EXPECT_TRUE(stands_after_overhead_again(kernel, &seconds));
  EXPECT_EQ(seconds, (std::vector<double>{9, 2}));  // all are less the same empty call
  EXPECT_EQ(kernel.asked, 1);
}

TEST(OverheadAgain, a_call_that_is_sooner_than_these_too_does_not) {
  for (const double later : {9.0, 8.0, 12.0}) {  // 8: as long as an empty one; 12: busier now
    Kernel kernel{.later = later};
    std::vector<double> seconds = {5, -2};
    EXPECT_FALSE(stands_after_overhead_again(kernel, &seconds)) << later;
    EXPECT_EQ(seconds.front(), 5 + 10 - std::min(later, 10.0));
  }
}

}  // namespace
}  // namespace tigon::plugin
