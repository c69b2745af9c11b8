// SPDX-License-Identifier: Apache-2.0
// Whether rows of two tensors can be read side by side in vectors. Host side.
#pragma once
#include <cstdint>

#include "kernels/signature/signature.h"

namespace tigon {

// True when some row of one starts elsewhere between two multiples of 16 bytes than the other's.
template <class A, class B>
bool differ_in_alignment(const View<A, 2>& a, const View<B, 2>& b) {
  static_assert(sizeof(A) == sizeof(B));
  const auto apart = reinterpret_cast<uintptr_t>(a.data) - reinterpret_cast<uintptr_t>(b.data);
  const int64_t drift = (a.stride[0] - b.stride[0]) * static_cast<int64_t>(sizeof(A));
  return apart % 16 != 0 || (a.shape[0] > 1 && drift % 16 != 0);
}

}  // namespace tigon
