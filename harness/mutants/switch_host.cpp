// SPDX-License-Identifier: Apache-2.0
// The chosen fault of a process without a GPU.
#include <array>
#include <atomic>

#include "harness/mutants/planted.h"
#include "harness/mutants/switch.h"

namespace tigon {

namespace {

uint32_t chosen = 0;  // set between launches, when no kernel runs

// Those passed, each where its hash or the next free place is: more places than there are faults.
constexpr size_t kPlaces = 1 << 14;
std::array<std::atomic<uint32_t>, kPlaces> passed;

void note(uint32_t fault) {
  for (size_t i = 0; i < kPlaces; ++i) {
    std::atomic<uint32_t>& place = passed[(fault + i) % kPlaces];
    uint32_t there = place.load(std::memory_order_relaxed);
    if (there == 0 && place.compare_exchange_strong(there, fault)) return;
    if (there == fault) return;
  }
}

}  // namespace

void plant(const char* name) { chosen = *name == '\0' ? 0 : FaultId::hash(name); }

bool device::is_planted(uint32_t fault) {
  if (chosen == 0) note(fault);
  return fault == chosen;
}

std::vector<uint32_t> take_reached() {
  std::vector<uint32_t> all;
  for (auto& place : passed)
    if (const uint32_t fault = place.exchange(0, std::memory_order_relaxed); fault != 0)
      all.push_back(fault);
  return all;
}

}  // namespace tigon
