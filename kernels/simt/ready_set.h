// SPDX-License-Identifier: Apache-2.0
// The CUDA threads that can run, as bit masks, and the order in which a schedule takes them.
#pragma once
#include <cstdint>

#include "kernels/simt/simt.h"

namespace tigon::simt {

struct Warp;
struct Thread;

class ReadySet {
 public:
  void reset(Warp* warps, unsigned count, Schedule schedule);
  void seed(uint64_t seed) { random_ = seed | 1; }
  bool random() const { return schedule_ != Schedule::kSequential; }
  uint64_t draw();  // a pseudo-random number

  void add(Warp& w, uint32_t lanes);
  // Removes and returns the thread to run next, or nullptr.
  Thread* take();
  // The same, but prefers the lanes of `w`, so that a warp's 32 stacks stay in the L1 cache.
  Thread* take_near(Warp& w);

 private:
  static constexpr unsigned kWords = 8;  // 16 blocks of 32 warps
  Thread* take_lane(Warp& w, unsigned lane);
  Thread* take_sequential();
  Thread* take_uniform();
  Thread* take_last();

  Warp* warps_ = nullptr;
  unsigned words_ = 0;
  unsigned current_ = 0;
  Schedule schedule_ = Schedule::kSequential;
  uint64_t random_ = 1;
  uint64_t mask_[kWords] = {};  // warps with a ready lane
};

}  // namespace tigon::simt
