// SPDX-License-Identifier: Apache-2.0
// The checker's arena: device and shared memory lie in one reserved range, beside which lie a state
// byte for each byte and the access history of each pair of bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tigon::simt::shadow {

inline constexpr size_t kArenaBytes = size_t{4} << 30;  // address space, not memory
inline constexpr size_t kCellBytes = 2;

inline constexpr uint8_t kAllocated = 1;
inline constexpr uint8_t kInitialized = 2;

// One access. Epochs are counts of barriers, cut to 16 bits.
struct Access {
  uint32_t block_plus_1 = 0;  // 0: none
  uint32_t launch = 0;
  uint16_t thread : 10 = 0;
  uint16_t flags : 6 = 0;
  uint16_t block_epoch = 0;
  uint16_t warp_epoch = 0;
  uint16_t cluster_epoch = 0;
  uint32_t pc_low = 0;
  uint16_t pc_high = 0;
  uint16_t bytes : 2 = 0;    // which of the cell's two, as a mask
  uint16_t events : 14 = 0;  // of shared memory: the thread's so far (async_order.h), cut
};
inline constexpr uint32_t kEventMask = (1u << 14) - 1;
static_assert(sizeof(Access) == 24);

struct Cell {
  Access write, read;  // the latest
};

struct Arena {
  char* data = nullptr;
  uint8_t* state = nullptr;
  Cell* cells = nullptr;
};
// Reserved by the first allocation, since a process that only loads kernels may be short of address
// space.
extern constinit Arena arena;

// Offset in the arena; kArenaBytes or more for memory that is not in it.
inline size_t offset_of(const void* p) {
  if (arena.data == nullptr) return kArenaBytes;
  return static_cast<size_t>(static_cast<const char*>(p) - arena.data);
}

// A range with red zones on both sides, or nullptr.
char* allocate(size_t bytes);
void release(char* p, size_t bytes);

void set_state(const void* p, size_t bytes, uint8_t state);
// True when every byte has all bits of `state`.
bool has_state(size_t offset, size_t bytes, uint8_t state);

// "byte 1024 of a buffer of 1000 bytes", for messages.
std::string describe(const void* p);

}  // namespace tigon::simt::shadow
