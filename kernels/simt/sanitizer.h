// SPDX-License-Identifier: Apache-2.0
// What AddressSanitizer must be told about fibers and shared memory; nothing in other builds.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define TIGON_SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIGON_SIMT_ASAN 1
#endif
#endif
#ifdef TIGON_SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tigon::simt::sanitizer {

#ifdef TIGON_SIMT_ASAN
inline constexpr bool kEnabled = true;
// Frames of sanitized code are large, and reports are printed on the fiber's stack.
inline constexpr size_t kMinStack = 256 * 1024;
inline void poison(void* p, size_t n) { __asan_poison_memory_region(p, n); }
inline void unpoison(void* p, size_t n) { __asan_unpoison_memory_region(p, n); }
inline void leave(void** fake, const void* bottom, size_t size) {
  __sanitizer_start_switch_fiber(fake, bottom, size);
}
inline void enter(void* fake, const void** bottom, size_t* size) {
  __sanitizer_finish_switch_fiber(fake, bottom, size);
}
#else
inline constexpr bool kEnabled = false;
inline constexpr size_t kMinStack = 0;
inline void poison(void*, size_t) {}
inline void unpoison(void*, size_t) {}
inline void leave(void**, const void*, size_t) {}
inline void enter(void*, const void**, size_t*) {}
#endif

}  // namespace tigon::simt::sanitizer
