// SPDX-License-Identifier: Apache-2.0
// Memory that goes back to the system is no longer forbidden: a new thread may get its addresses.
#include <gtest/gtest.h>

#include "kernels/simt/fiber.h"
#include "kernels/simt/sanitizer.h"
#include "kernels/simt/shared_memory.h"

namespace tigon::simt {
namespace {

bool is_forbidden(char* p, size_t bytes) { return __asan_region_is_poisoned(p, bytes) != nullptr; }

TEST(GivenBack, StacksOfFibersThatNeverReturned) {
  char* stack = nullptr;
  size_t bytes = 0;
  {
    StackPool pool;
    pool.set_size(sanitizer::kMinStack);
    stack = pool.take();
    bytes = pool.stack_bytes();
    sanitizer::poison(stack + bytes / 2, 32);  // as a frame's red zone does
    ASSERT_TRUE(is_forbidden(stack, bytes));
  }
  EXPECT_FALSE(is_forbidden(stack, bytes));
}

TEST(GivenBack, SharedMemoryAlsoWhenMoreIsNeeded) {
  SharedMemory shared;
  shared.begin_launch(1, 0, false);
  char* const one = shared.block(0);
  ASSERT_TRUE(is_forbidden(one, SharedMemory::kBlockBytes));
  // The larger arena may lie at the same place: only what it does not cover is asked for.
  shared.begin_launch(2, 0, false);
  char *const first = shared.block(0), *const behind = shared.block(2);
  for (char* p = one; p < one + SharedMemory::kBlockBytes; ++p)
    if (p < first || p >= behind) ASSERT_FALSE(is_forbidden(p, 1));
}

}  // namespace
}  // namespace tigon::simt
