// SPDX-License-Identifier: Apache-2.0
// main() of the tests that run cases: it is also their children's.
#include <gtest/gtest.h>

#include <cstring>

#include "harness/run/process/child.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "child") == 0) return tigon::child_main(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
