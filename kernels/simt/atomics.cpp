// SPDX-License-Identifier: Apache-2.0
// Atomics of kernel code: also atomic between the OS threads that run blocks.
#include <atomic>
#include <type_traits>

#include "kernels/simt/check.h"
#include "kernels/simt/kernel_api.h"

namespace tigon::simt {

namespace {
template <class T>
T combine(AtomicOp op, T old, T v) {
  switch (op) {
    case AtomicOp::kAdd:
      return static_cast<T>(old + v);
    case AtomicOp::kMin:
      return v < old ? v : old;
    case AtomicOp::kMax:
      return v > old ? v : old;
    case AtomicOp::kExchange:
      return v;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == AtomicOp::kAnd) return old & v;
    if (op == AtomicOp::kOr) return old | v;
    if (op == AtomicOp::kXor) return old ^ v;
  }
  return old;
}
}  // namespace

template <class T>
T atomic_update(AtomicOp op, T* p, T value) {
  check::atomic_access(p, sizeof(T), __builtin_return_address(0));
  std::atomic_ref<T> ref(*p);
  T old = ref.load(std::memory_order_relaxed);
  while (!ref.compare_exchange_weak(old, combine(op, old, value), std::memory_order_acq_rel)) {
  }
  return old;
}

template <class T>
T atomic_compare_exchange(T* p, T expected, T desired) {
  check::atomic_access(p, sizeof(T), __builtin_return_address(0));
  std::atomic_ref<T>(*p).compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
  return expected;
}

template int atomic_update(AtomicOp, int*, int);
template unsigned atomic_update(AtomicOp, unsigned*, unsigned);
template long atomic_update(AtomicOp, long*, long);
template unsigned long atomic_update(AtomicOp, unsigned long*, unsigned long);
template long long atomic_update(AtomicOp, long long*, long long);
template unsigned long long atomic_update(AtomicOp, unsigned long long*, unsigned long long);
template float atomic_update(AtomicOp, float*, float);
template double atomic_update(AtomicOp, double*, double);
template int atomic_compare_exchange(int*, int, int);
template unsigned atomic_compare_exchange(unsigned*, unsigned, unsigned);
template unsigned long long atomic_compare_exchange(unsigned long long*, unsigned long long,
                                                    unsigned long long);

}  // namespace tigon::simt
