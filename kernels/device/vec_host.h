// SPDX-License-Identifier: Apache-2.0
// Host bodies of vec.h: every access is one instruction of its width on an integer, which is what
// the checker, the sanitizers and the counters see.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/device/platform.h"

namespace tigon::device {

template <size_t kBytes>
struct RawOf;
template <>
struct RawOf<1> {
  typedef uint8_t Type __attribute__((may_alias));
};
template <>
struct RawOf<2> {
  typedef uint16_t Type __attribute__((may_alias));
};
template <>
struct RawOf<4> {
  typedef uint32_t Type __attribute__((may_alias));
};
template <>
struct RawOf<8> {
  typedef uint64_t Type __attribute__((may_alias));
};
template <>
struct RawOf<16> {
  typedef uint32_t Type __attribute__((vector_size(16), may_alias));
};

template <class To, class From>
TIGON_DEVICE To load_raw(const From* p) {
  using Raw = typename RawOf<sizeof(To)>::Type;
  const Raw raw = *reinterpret_cast<const Raw*>(p);
  To r;
  __builtin_memcpy(&r, &raw, sizeof r);
  return r;
}
template <class To, class From>
TIGON_DEVICE void store_raw(To* p, const From& v) {
  using Raw = typename RawOf<sizeof(From)>::Type;
  Raw raw;
  __builtin_memcpy(&raw, &v, sizeof v);
  *reinterpret_cast<Raw*>(p) = raw;
}
// AVX instructions would accept any address, a GPU does not.
TIGON_DEVICE void require_aligned16(const void* p) {
  if (__builtin_expect(reinterpret_cast<uintptr_t>(p) & 15, 0)) ::tigon::simt::misaligned(p);
}

template <class T>
TIGON_DEVICE T load_element(const T* p) {
  return load_raw<T>(p);
}
template <class T>
TIGON_DEVICE T load_element_stream(const T* p) {
  return load_raw<T>(p);
}
template <class T>
TIGON_DEVICE void store_element(T* p, T v) {
  store_raw(p, v);
}
template <class T>
TIGON_DEVICE Vec<T> load_vec(const T* p) {
  require_aligned16(p);
  return load_raw<Vec<T>>(p);
}
template <class T>
TIGON_DEVICE Vec<T> load_vec_stream(const T* p) {
  return load_vec(p);
}
template <class T>
TIGON_DEVICE void store_vec(T* p, const Vec<T>& v) {
  require_aligned16(p);
  store_raw(p, v);
}

// Whole vectors at once: clang does not vectorise the loop over elements.
typedef uint16_t U16x8 __attribute__((vector_size(16)));
typedef uint32_t U32x8 __attribute__((vector_size(32)));
typedef float F32x8 __attribute__((vector_size(32)));

TIGON_DEVICE void bf16_unpack8(const void* from, float* to) {
  U16x8 h;
  __builtin_memcpy(&h, from, sizeof h);
  const U32x8 bits = __builtin_convertvector(h, U32x8) << 16;
  __builtin_memcpy(to, &bits, sizeof bits);
}
TIGON_DEVICE void bf16_pack8(const float* from, void* to) {
  U32x8 b;
  __builtin_memcpy(&b, from, sizeof b);
  const U32x8 rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
  const U32x8 nan = U32x8{} + 0x7fffu;
  const U32x8 bits = (b & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
  const U16x8 h = __builtin_convertvector(bits, U16x8);
  __builtin_memcpy(to, &h, sizeof h);
}

template <class T>
TIGON_DEVICE void unpack2(const Vec<T>& v, float (&f)[8]) {
  if constexpr (std::is_same_v<T, bf16>) {
    bf16_unpack8(&v, f);
  } else {
    TIGON_UNROLL
    for (int i = 0; i < 8; ++i) f[i] = static_cast<float>(v[i]);
  }
}
template <class T>
TIGON_DEVICE Vec<T> pack2(const float (&f)[8]) {
  Vec<T> v;
  if constexpr (std::is_same_v<T, bf16>) {
    bf16_pack8(f, &v);
  } else {
    TIGON_UNROLL
    for (int i = 0; i < 8; ++i) v[i] = T(f[i]);
  }
  return v;
}

}  // namespace tigon::device
