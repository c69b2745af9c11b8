// SPDX-License-Identifier: Apache-2.0
// Reservation and allocation of the checker's arena.
#include "kernels/simt/shadow.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

namespace tigon::simt::shadow {

namespace {

constexpr size_t kAlign = 256;
constexpr size_t kRedZone = 512;
// Larger freed ranges give their shadow's pages back, because a history is 24 times its memory; of
// smaller ones the next tensor there needs no new pages.
constexpr size_t kGiveBack = 16 << 20;

void* reserve(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return p;
}

size_t footprint(size_t bytes) {
  return kRedZone + (bytes + kAlign - 1) / kAlign * kAlign + kRedZone;
}

std::mutex maps_mutex;                 // guards the two maps
std::map<size_t, size_t> free_ranges;  // offset -> bytes
std::map<size_t, size_t> buffers;      // offset of data -> bytes, as asked for

std::map<size_t, size_t>& free_list() {
  if (free_ranges.empty() && buffers.empty()) free_ranges[0] = kArenaBytes;
  return free_ranges;
}

// The caller holds the mutex.
void reserve_arena() {
  if (arena.data != nullptr) return;
  arena.state = static_cast<uint8_t*>(reserve(kArenaBytes));
  arena.cells = static_cast<Cell*>(reserve(kArenaBytes / kCellBytes * sizeof(Cell)));
  arena.data = static_cast<char*>(reserve(kArenaBytes));
}

void drop_pages(void* p, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(p) + kPage - 1) & ~(kPage - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(p) + bytes) & ~(kPage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

constinit Arena arena;

char* allocate(size_t bytes) {
  if (bytes > kArenaBytes) return nullptr;
  const size_t need = footprint(bytes);
  const std::lock_guard lock(maps_mutex);
  reserve_arena();
  auto& ranges = free_list();
  for (auto it = ranges.begin(); it != ranges.end(); ++it) {
    if (it->second < need) continue;
    const auto [offset, size] = *it;
    ranges.erase(it);
    if (size > need) ranges[offset + need] = size - need;
    buffers[offset + kRedZone] = bytes;
    char* p = arena.data + offset + kRedZone;
    set_state(p, bytes, kAllocated);
    return p;
  }
  return nullptr;
}

void release(char* p, size_t bytes) {
  const std::lock_guard lock(maps_mutex);
  const size_t offset = offset_of(p);
  set_state(p, bytes, 0);
  if (bytes >= kGiveBack) {
    drop_pages(p, bytes);
    drop_pages(arena.cells + offset / kCellBytes, bytes / kCellBytes * sizeof(Cell));
  }
  buffers.erase(offset);
  auto& ranges = free_list();
  auto it = ranges.emplace(offset - kRedZone, footprint(bytes)).first;
  const auto next = std::next(it);
  if (next != ranges.end() && it->first + it->second == next->first) {
    it->second += next->second;
    ranges.erase(next);
  }
  if (it == ranges.begin()) return;
  const auto before = std::prev(it);
  if (before->first + before->second != it->first) return;
  before->second += it->second;
  ranges.erase(it);
}

void set_state(const void* p, size_t bytes, uint8_t state) {
  memset(arena.state + offset_of(p), state, bytes);
}

bool has_state(size_t offset, size_t bytes, uint8_t state) {
  const uint8_t* s = arena.state + offset;
  if (bytes % 8 == 0) {  // the usual case: a word at a time
    const uint64_t pattern = 0x0101010101010101u * state;
    for (size_t i = 0; i < bytes; i += 8) {
      uint64_t word;
      memcpy(&word, s + i, 8);
      if ((word & pattern) != pattern) return false;
    }
    return true;
  }
  for (size_t i = 0; i < bytes; ++i)
    if ((s[i] & state) != state) return false;
  return true;
}

std::string describe(const void* p) {
  const std::lock_guard lock(maps_mutex);
  const size_t offset = offset_of(p);
  auto it = buffers.upper_bound(offset);
  // In the red zone before a buffer, or behind the nearest one below.
  const bool before_next = it != buffers.end() && it->first - offset <= kRedZone / 2;
  if (!before_next && it == buffers.begin()) return "outside of every buffer";
  if (!before_next) --it;
  char text[120];
  snprintf(text, sizeof text, "byte %td of a buffer of %zu bytes",
           static_cast<ptrdiff_t>(offset - it->first), it->second);
  return text;
}

}  // namespace tigon::simt::shadow
