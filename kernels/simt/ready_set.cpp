// SPDX-License-Identifier: Apache-2.0
// Schedules of the host executor.
#include "kernels/simt/ready_set.h"

#include <bit>
#include <cstring>

#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {
unsigned lowest(uint64_t m) { return static_cast<unsigned>(std::countr_zero(m)); }

template <class Mask>
unsigned nth_bit(Mask m, unsigned n) {
  while (n-- > 0) m &= m - 1;
  return static_cast<unsigned>(std::countr_zero(m));
}
}  // namespace

void ReadySet::reset(Warp* warps, unsigned count, Schedule schedule) {
  warps_ = warps;
  words_ = (count + 63) / 64;
  current_ = 0;
  schedule_ = schedule;
  memset(mask_, 0, sizeof mask_);
}

uint64_t ReadySet::draw() {  // xorshift64
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void ReadySet::add(Warp& w, uint32_t lanes) {
  if (lanes == 0) return;
  w.ready |= lanes;
  mask_[w.index >> 6] |= uint64_t{1} << (w.index & 63);
}

Thread* ReadySet::take_lane(Warp& w, unsigned lane) {
  w.ready &= ~(1u << lane);
  if (w.ready == 0) mask_[w.index >> 6] &= ~(uint64_t{1} << (w.index & 63));
  return w.threads + lane;
}

Thread* ReadySet::take_near(Warp& w) {
  if (w.ready != 0 && schedule_ == Schedule::kSequential) return take_lane(w, lowest(w.ready));
  return take();
}

Thread* ReadySet::take() {
  switch (schedule_) {
    case Schedule::kSequential:
      return take_sequential();
    case Schedule::kUniform:
      return take_uniform();
    case Schedule::kAhead: {
      Warp& w = warps_[current_];
      if (w.ready != 0 && draw() % 64 != 0) return take_lane(w, lowest(w.ready));
      return take_uniform();
    }
    case Schedule::kReverse:
      return take_last();
  }
  return nullptr;
}

Thread* ReadySet::take_sequential() {
  unsigned word = current_ >> 6;
  uint64_t m = mask_[word] & (~uint64_t{0} << (current_ & 63));
  for (unsigned k = 0; k <= words_; ++k) {
    if (m != 0) {
      current_ = word * 64 + lowest(m);
      Warp& w = warps_[current_];
      return take_lane(w, lowest(w.ready));
    }
    word = word + 1 == words_ ? 0 : word + 1;
    m = mask_[word];
  }
  return nullptr;
}

Thread* ReadySet::take_uniform() {
  unsigned total = 0;
  for (unsigned k = 0; k < words_; ++k) total += static_cast<unsigned>(std::popcount(mask_[k]));
  if (total == 0) return nullptr;
  unsigned n = static_cast<unsigned>(draw() % total);
  unsigned word = 0;
  for (;; ++word) {
    const auto here = static_cast<unsigned>(std::popcount(mask_[word]));
    if (n < here) break;
    n -= here;
  }
  current_ = word * 64 + nth_bit(mask_[word], n);
  Warp& w = warps_[current_];
  const auto lanes = static_cast<unsigned>(std::popcount(w.ready));
  return take_lane(w, nth_bit(w.ready, static_cast<unsigned>(draw() % lanes)));
}

Thread* ReadySet::take_last() {
  for (unsigned k = words_; k-- > 0;) {
    if (mask_[k] == 0) continue;
    Warp& w = warps_[k * 64 + 63 - static_cast<unsigned>(std::countl_zero(mask_[k]))];
    return take_lane(w, 31 - static_cast<unsigned>(std::countl_zero(w.ready)));
  }
  return nullptr;
}

}  // namespace tigon::simt
