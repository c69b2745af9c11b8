// SPDX-License-Identifier: Apache-2.0
// Memory that workers share.
#include "harness/run/process/room.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tigon {
namespace {

// The most bytes that threads with parts of so many bytes hold at once.
double most_held(double room_bytes, double part_bytes) {
  Room room(room_bytes);
  std::atomic<double> held{0}, most{0};
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      const Room::Part part(&room, part_bytes);
      const double now = held += part_bytes;
      for (double seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
      std::this_thread::yield();
      held -= part_bytes;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  return most;
}

TEST(Room, is_never_overfull) { EXPECT_LE(most_held(100, 30), 90); }
TEST(Room, has_what_is_larger_alone) { EXPECT_EQ(most_held(100, 1000), 1000); }

TEST(Room, holds_what_fits_together) {
  Room room(100);
  const Room::Part one(&room, 40), other(&room, 60);  // else it would wait for ever
}

}  // namespace
}  // namespace tigon
