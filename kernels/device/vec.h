// SPDX-License-Identifier: Apache-2.0
// Loads and stores of global memory, 16 bytes wide or one element, and conversion to float. Kernels
// touch tensors through these: on a GPU they choose the cache hint, on the host they keep the width
// of the access visible to the checker and the counters.
#pragma once
#include "kernels/device/platform.h"

namespace tigon {

// Elements of T in 16 bytes.
template <class T>
inline constexpr int kVec = 16 / static_cast<int>(sizeof(T));

template <class T>
struct alignas(16) Vec {
  T v[16 / sizeof(T)];
  TIGON_HOST_DEVICE T& operator[](int i) { return v[i]; }
  TIGON_HOST_DEVICE const T& operator[](int i) const { return v[i]; }
};

// Type in which values of T are computed.
template <class T>
struct Computed {
  using Type = float;
};
template <>
struct Computed<double> {
  using Type = double;
};

}  // namespace tigon

#if TIGON_GPU
#include "kernels/device/vec_cuda.h"
#else
#include "kernels/device/vec_host.h"
#endif

namespace tigon {

template <class T>
TIGON_HOST_DEVICE bool is_aligned16(const T* p) {
  return (reinterpret_cast<uintptr_t>(p) & 15) == 0;
}

template <class T>
TIGON_DEVICE float to_float(T v) {
  return static_cast<float>(v);
}
template <class T>
TIGON_DEVICE T from_float(float f) {
  return T(f);
}

// One element of any type of 1, 2, 4 or 8 bytes.
template <class T>
TIGON_DEVICE T load(const T* p) {
  return device::load_element(p);
}
// The same for data that is read once. The compiler leaves the load where it stands and does not
// repeat it to save registers. Not for memory that this kernel has written.
template <class T>
TIGON_DEVICE T load_stream(const T* p) {
  return device::load_element_stream(p);
}
template <class T>
TIGON_DEVICE void store(T* p, std::type_identity_t<T> v) {
  device::store_element(p, v);
}

// 16 bytes; p must be a multiple of 16.
template <class T>
TIGON_DEVICE Vec<T> load16(const T* p) {
  return device::load_vec(p);
}
template <class T>
TIGON_DEVICE Vec<T> load16_stream(const T* p) {
  return device::load_vec_stream(p);
}
template <class T>
TIGON_DEVICE void store16(T* p, const std::type_identity_t<Vec<T>>& v) {
  device::store_vec(p, v);
}

// The values of a vector as float (as double for double).
template <class T>
TIGON_DEVICE void unpack(const Vec<T>& v, typename Computed<T>::Type (&f)[kVec<T>]) {
  if constexpr (sizeof(T) == 2) {
    device::unpack2(v, f);
  } else {
    TIGON_UNROLL
    for (int i = 0; i < kVec<T>; ++i) f[i] = v[i];
  }
}
// Rounded to T, to nearest and ties to even.
template <class T>
TIGON_DEVICE Vec<T> pack(const typename Computed<T>::Type (&f)[kVec<T>]) {
  if constexpr (sizeof(T) == 2) {
    return device::pack2<T>(f);
  } else {
    Vec<T> v;
    TIGON_UNROLL
    for (int i = 0; i < kVec<T>; ++i) v[i] = f[i];
    return v;
  }
}

}  // namespace tigon
