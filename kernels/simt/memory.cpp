// SPDX-License-Identifier: Apache-2.0
// Memory of devices and blocks: of the checker's arena, with red zones, in a process that checks
// accesses, else of the system.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "kernels/simt/check.h"
#include "kernels/simt/device_memory.h"
#include "kernels/simt/launched.h"
#include "kernels/simt/sanitizer.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/simt.h"

namespace tigon::simt {

namespace {

void* from_system(size_t bytes) {
  // The system would promise more than there is and end the process when it is used.
  const auto physical =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > physical) return nullptr;
  void* p = nullptr;
  // Not rounded up, so that AddressSanitizer's red zone starts at the first byte behind.
  return posix_memalign(&p, 256, bytes != 0 ? bytes : 1) == 0 ? p : nullptr;
}

// Pages that are not touched take no memory. nullptr when there are no addresses left.
void* map_pages(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// What the system gave and has not got back.
class Allocations {
 public:
  void add(const void* p, size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_[static_cast<const char*>(p)] = bytes;
  }
  void drop(const void* p) {
    const std::lock_guard lock(mutex_);
    bytes_.erase(static_cast<const char*>(p));
  }
  bool hold(const void* p, size_t bytes) {
    const auto* first = static_cast<const char*>(p);
    const std::lock_guard lock(mutex_);
    const auto behind = bytes_.upper_bound(first);
    if (behind == bytes_.begin()) return false;
    const auto& [begin, size] = *std::prev(behind);
    const auto offset = static_cast<size_t>(first - begin);
    return offset <= size && bytes <= size - offset;
  }

 private:
  std::mutex mutex_;
  std::map<const char*, size_t> bytes_;
} allocations;

bool are_prefetches_watched = false;

}  // namespace

void watch_prefetches() { are_prefetches_watched = true; }

bool may_prefetch(const void* p, size_t bytes) {
  return !are_prefetches_watched || allocations.hold(p, bytes);
}

void* memory_allocate(size_t bytes) {
  if (check::enabled) return shadow::allocate(bytes);
  void* p = from_system(bytes);
  if (are_prefetches_watched && p != nullptr) allocations.add(p, bytes);
  return p;
}

void memory_free(void* p, size_t bytes) {
  if (check::enabled) return shadow::release(static_cast<char*>(p), bytes);
  if (are_prefetches_watched) allocations.drop(p);
  free(p);
}

void* memory_reserve(size_t bytes) {
  void* p = map_pages(bytes);
  if (are_prefetches_watched && p != nullptr) allocations.add(p, bytes);
  return p;
}

void memory_release(void* p, size_t bytes) {
  if (are_prefetches_watched) allocations.drop(p);
  munmap(p, bytes);
}

void memory_mark(void* p, size_t bytes, bool initialized) {
  if (!check::enabled) return;
  close_launches();
  if (shadow::offset_of(p) >= shadow::kArenaBytes) return;  // host memory
  shadow::set_state(p, bytes,
                    initialized ? shadow::kAllocated | shadow::kInitialized : shadow::kAllocated);
}

char* shared_arena_allocate(size_t bytes) {
  if (check::enabled) {
    char* p = shadow::allocate(bytes);
    if (p == nullptr) throw std::bad_alloc();
    return p;
  }
  void* p = map_pages(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return static_cast<char*>(p);
}

void shared_arena_free(char* p, size_t bytes) {
  sanitizer::unpoison(p, bytes);  // the system may give these addresses to anybody
  if (check::enabled)
    shadow::release(p, bytes);
  else
    munmap(p, bytes);
}

}  // namespace tigon::simt
