// SPDX-License-Identifier: Apache-2.0
// Memory that workers share: each waits until there is enough for its case.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace tigon {

class Room {
 public:
  explicit Room(double bytes) : bytes_(bytes), free_(bytes) {}

  // Held as long as it lives. What is larger than the room has all of it, alone.
  class Part {
   public:
    Part(Room* room, double bytes) : room_(*room), bytes_(std::min(bytes, room->bytes_)) {
      std::unique_lock lock(room_.mutex_);
      room_.left_.wait(lock, [&] { return bytes_ <= room_.free_; });
      room_.free_ -= bytes_;
    }
    ~Part() {
      const std::lock_guard lock(room_.mutex_);
      room_.free_ += bytes_;
      room_.left_.notify_all();
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    Room& room_;
    double bytes_;
  };

 private:
  const double bytes_;
  double free_;
  std::mutex mutex_;
  std::condition_variable left_;
};

}  // namespace tigon
