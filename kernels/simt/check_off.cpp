// SPDX-License-Identifier: Apache-2.0
// The fast flavour: no checker, no counters.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "kernels/simt/check.h"
#include "kernels/simt/device_memory.h"
#include "kernels/simt/simt.h"

namespace tigon::simt {

bool checked() { return false; }

std::map<std::string, Counters> counters() { return {}; }
void counters_reset() {}
std::vector<LineCounters> line_counters() { return {}; }
std::vector<Writer> writers(const std::vector<const void*>& addresses) {
  return std::vector<Writer>(addresses.size());
}

void* memory_allocate(size_t bytes) {
  // The system would promise more than there is and end the process when it is used.
  const auto physical =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > physical) return nullptr;
  void* p = nullptr;
  // Not rounded up, so that AddressSanitizer's red zone starts at the first byte behind.
  return posix_memalign(&p, 256, bytes != 0 ? bytes : 1) == 0 ? p : nullptr;
}
void memory_free(void* p, size_t) { free(p); }
void memory_mark(void*, size_t, bool) {}

namespace check {

char* shared_arena_allocate(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(p);
}

void shared_arena_free(char* p, size_t bytes) { munmap(p, bytes); }

}  // namespace check
}  // namespace tigon::simt
