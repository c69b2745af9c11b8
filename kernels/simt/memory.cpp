// SPDX-License-Identifier: Apache-2.0
// Memory of devices and blocks: of the checker's arena, with red zones, in a process that checks
// accesses, else of the system.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "kernels/simt/check.h"
#include "kernels/simt/device_memory.h"
#include "kernels/simt/launched.h"
#include "kernels/simt/shadow.h"

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

}  // namespace

void* memory_allocate(size_t bytes) {
  return check::enabled ? shadow::allocate(bytes) : from_system(bytes);
}

void memory_free(void* p, size_t bytes) {
  if (check::enabled)
    shadow::release(static_cast<char*>(p), bytes);
  else
    free(p);
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
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(p);
}

void shared_arena_free(char* p, size_t bytes) {
  if (check::enabled)
    shadow::release(p, bytes);
  else
    munmap(p, bytes);
}

}  // namespace tigon::simt
