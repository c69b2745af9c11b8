// SPDX-License-Identifier: Apache-2.0
// A library to preload: the clock of the day jumps at every look, by a day forth or an hour back.
// The monotonic clock is left alone.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

time_t jump() {
  static std::atomic<int> looks{0};
  return looks++ % 2 == 0 ? 86400 : -3600;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* now) {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME) now->tv_sec += jump();
  return result;
}

int gettimeofday(struct timeval* now, void*) {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = static_cast<suseconds_t>(precise.tv_nsec / 1000);
  return 0;
}

time_t time(time_t* to) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
