// SPDX-License-Identifier: Apache-2.0
// What launchers ask of the views they are given before they trust them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/signature/signature.h"

namespace tigon {

// True when the sizes are these and elements of the last dimension follow each other.
template <class T, int N, class... Sizes>
bool has_shape(const View<T, N>& v, Sizes... sizes) {
  static_assert(sizeof...(Sizes) == N);
  int i = 0;
  const bool same = ((v.shape[i++] == static_cast<int64_t>(sizes)) && ...);
  return same && (v.stride[N - 1] == 1 || v.shape[N - 1] <= 1);
}

// True when the view has elements but no memory.
template <class T, int N>
bool is_missing(const View<T, N>& v) {
  return v.data == nullptr && v.size() > 0;
}

// True when every row starts at a multiple of 16 bytes, so that rows can be read in vectors.
template <class T, int N>
bool rows_aligned16(const View<T, N>& v) {
  if (reinterpret_cast<uintptr_t>(v.data) % 16 != 0) return false;
  for (int i = 0; i + 1 < N; ++i)
    if (v.shape[i] > 1 && v.stride[i] * static_cast<int64_t>(sizeof(T)) % 16 != 0) return false;
  return true;
}

template <class T>
int64_t row_bytes(const View<T, 2>& v) {
  return v.shape[1] * static_cast<int64_t>(sizeof(T));
}

}  // namespace tigon
