// SPDX-License-Identifier: Apache-2.0
// Buffers that live at the same time never overlap; others share memory.
#include "convergence/memory_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "convergence/text_data.h"

namespace tigon::convergence {
namespace {

struct Life {
  int64_t bytes;
  int first, last;
};

std::vector<char*> take_all(MemoryPlan& plan, const std::vector<Life>& lives) {
  std::vector<char*> at;
  for (const Life& l : lives) at.push_back(plan.take<char>(Part::kOther, l.bytes, l.first, l.last));
  return at;
}

TEST(MemoryPlan, BuffersOfOnePhaseDoNotOverlap) {
  std::vector<Life> lives;
  for (uint64_t i = 0; i < 200; ++i) {
    const int first = static_cast<int>(random_bits(1, 0, i) % 20);
    const int last = first + static_cast<int>(random_bits(1, 1, i) % 6);
    lives.push_back({static_cast<int64_t>(random_bits(1, 2, i) % 5000), first, last});
  }
  MemoryPlan plan;
  take_all(plan, lives);
  const int64_t total = plan.place();
  std::vector<char> memory(static_cast<size_t>(total));
  plan.resolve(memory.data());
  const std::vector<char*> at = take_all(plan, lives);
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ((at[i] - memory.data()) % 256, 0);
    EXPECT_LE(at[i] + lives[i].bytes, memory.data() + total);
    for (size_t j = 0; j < i; ++j) {
      const bool meet = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      const bool overlap = at[i] < at[j] + lives[j].bytes && at[j] < at[i] + lives[i].bytes;
      ASSERT_FALSE(meet && overlap) << i << " " << j;
    }
  }
}

TEST(MemoryPlan, LaterBuffersReuseMemory) {
  MemoryPlan plan;
  plan.take<float>(Part::kOther, 1000, 0, 1);
  plan.take<float>(Part::kOther, 1000, 2, 3);
  EXPECT_EQ(plan.place(), 4096);
}

TEST(MemoryPlan, SaysWhatEachPartUsesInEachPhase) {
  MemoryPlan plan;
  plan.take<char>(Part::kNorms, 256, 0, 1);
  plan.take<char>(Part::kNorms, 512, 1, 1);
  plan.take<char>(Part::kLoss, 100, 1, 2);
  const std::vector<ByPart<int64_t>> phases = plan.in_use();
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0][Part::kNorms], 256);
  EXPECT_EQ(phases[1][Part::kNorms], 768);
  EXPECT_EQ(phases[1][Part::kLoss], 256) << "whole pieces of 256 bytes";
  EXPECT_EQ(phases[2].sum(), 256);
}

TEST(MemoryPlan, RefusesASecondPassThatDiffers) {
  MemoryPlan plan;
  plan.take<float>(Part::kOther, 10, 0, 1);
  std::vector<char> memory(static_cast<size_t>(plan.place()));
  plan.resolve(memory.data());
  EXPECT_THROW(plan.take<float>(Part::kOther, 100, 0, 1), std::logic_error);
}

}  // namespace
}  // namespace tigon::convergence
