// SPDX-License-Identifier: Apache-2.0
// Arrays whose begin is aligned to 64 bytes: where vector code begins in an array, and with it how
// it rounds, must not depend on where the array lies.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace tigon::convergence::next_action {

template <class T>
struct Aligned {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  Aligned() = default;
  template <class U>
  Aligned(const Aligned<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlignment); }
  bool operator==(const Aligned&) const { return true; }
};

using Floats = std::vector<float, Aligned<float>>;

}  // namespace tigon::convergence::next_action
