// SPDX-License-Identifier: Apache-2.0
// The functions that -fsanitize=thread makes compilers call. Kernels are compiled with that flag
// but linked with these instead of ThreadSanitizer's own, which would know nothing of CUDA threads.
#include "kernels/simt/tsan_hooks.h"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace check = tigon::simt::check;
using tigon::simt::on_access;

namespace {

// An access that the compiler does not know to be aligned: a struct of floats becomes loads of 4
// bytes on the GPU, anything else loads of what its address allows.
void on_pieces(const void* p, size_t bytes, bool write, const void* pc) {
  if (!check::enabled) return;
  const auto a = reinterpret_cast<uintptr_t>(p) | bytes;
  const size_t piece = (a & 3) == 0 ? 4 : (a & 1) == 0 ? 2 : 1;
  for (size_t i = 0; i < bytes; i += piece)
    on_access(static_cast<const char*>(p) + i, piece, write, pc);
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}

#define TIGON_PC __builtin_return_address(0)
#define TIGON_HOOKS(n)                                                                  \
  void __tsan_read##n(void* p) { on_access(p, n, false, TIGON_PC); }                    \
  void __tsan_write##n(void* p) { on_access(p, n, true, TIGON_PC); }                    \
  void __tsan_volatile_read##n(void* p) { on_access(p, n, false, TIGON_PC); }           \
  void __tsan_volatile_write##n(void* p) { on_access(p, n, true, TIGON_PC); }           \
  void __tsan_unaligned_read##n(void* p) { on_pieces(p, n, false, TIGON_PC); }          \
  void __tsan_unaligned_write##n(void* p) { on_pieces(p, n, true, TIGON_PC); }          \
  void __tsan_unaligned_volatile_read##n(void* p) { on_pieces(p, n, false, TIGON_PC); } \
  void __tsan_unaligned_volatile_write##n(void* p) { on_pieces(p, n, true, TIGON_PC); } \
  void __tsan_read_write##n(void* p) {                                                  \
    on_access(p, n, false, TIGON_PC);                                                   \
    on_access(p, n, true, TIGON_PC);                                                    \
  }
TIGON_HOOKS(1)
TIGON_HOOKS(2)
TIGON_HOOKS(4)
TIGON_HOOKS(8)
TIGON_HOOKS(16)
#undef TIGON_HOOKS

void __tsan_read_range(void* p, unsigned long n) { on_pieces(p, n, false, TIGON_PC); }
void __tsan_write_range(void* p, unsigned long n) { on_pieces(p, n, true, TIGON_PC); }

void* __tsan_memcpy(void* to, const void* from, unsigned long n) {
  on_pieces(from, n, false, TIGON_PC);
  on_pieces(to, n, true, TIGON_PC);
  return memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, unsigned long n) {
  on_pieces(from, n, false, TIGON_PC);
  on_pieces(to, n, true, TIGON_PC);
  return memmove(to, from, n);
}
void* __tsan_memset(void* to, int byte, unsigned long n) {
  on_pieces(to, n, true, TIGON_PC);
  return memset(to, byte, n);
}

// std::atomic and function-local statics of launchers: host code, so only done.
#define TIGON_ATOMICS(bits)                                                                        \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* p, int) {               \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* p, uint##bits##_t v, int) {            \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* p, uint##bits##_t v,      \
                                                int) {                                             \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile uint##bits##_t* p, uint##bits##_t v,     \
                                                 int) {                                            \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  uint##bits##_t __tsan_atomic##bits##_fetch_sub(volatile uint##bits##_t* p, uint##bits##_t v,     \
                                                 int) {                                            \
    return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(                                               \
      volatile uint##bits##_t* p, uint##bits##_t* expected, uint##bits##_t v, int, int) {          \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(                                                 \
      volatile uint##bits##_t* p, uint##bits##_t* expected, uint##bits##_t v, int, int) {          \
    return __atomic_compare_exchange_n(p, expected, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }
TIGON_ATOMICS(8)
TIGON_ATOMICS(32)
TIGON_ATOMICS(64)
#undef TIGON_ATOMICS
#undef TIGON_PC

}  // extern "C"
