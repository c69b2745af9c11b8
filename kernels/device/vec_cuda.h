// SPDX-License-Identifier: Apache-2.0
// GPU bodies of vec.h. The streaming load is coherent (no .nc), so that in-place kernels may use
// it; it is volatile, so that it is not moved across stores and barriers. It allocates in L1,
// though nothing is read there again: L1::no_allocate is slower.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/device/platform.h"

namespace tigon::device {

template <size_t kBytes>
struct RawOf;
template <>
struct RawOf<1> {
  using Type = uint8_t;
};
template <>
struct RawOf<2> {
  using Type = uint16_t;
};
template <>
struct RawOf<4> {
  using Type = uint32_t;
};
template <>
struct RawOf<8> {
  using Type = uint64_t;
};
template <>
struct RawOf<16> {
  using Type = uint4;
};
template <class T>
using Raw = typename RawOf<sizeof(T)>::Type;

template <class To, class From>
TIGON_DEVICE To raw_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

TIGON_DEVICE uint16_t load_once(const uint16_t* p) {
  uint16_t r;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(r) : "l"(p));
  return r;
}
TIGON_DEVICE uint32_t load_once(const uint32_t* p) {
  uint32_t r;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(r) : "l"(p));
  return r;
}
TIGON_DEVICE uint64_t load_once(const uint64_t* p) {
  uint64_t r;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(r) : "l"(p));
  return r;
}
TIGON_DEVICE uint4 load_once(const uint4* p) {
  uint4 r;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(p));
  return r;
}
TIGON_DEVICE uint8_t load_once(const uint8_t* p) { return *p; }

template <class T>
TIGON_DEVICE T load_element(const T* p) {
  return *p;
}
template <class T>
TIGON_DEVICE T load_element_stream(const T* p) {
  return raw_cast<T>(load_once(reinterpret_cast<const Raw<T>*>(p)));
}
template <class T>
TIGON_DEVICE void store_element(T* p, T v) {
  *p = v;
}
// By way of a local: a reference to memory handed to memcpy loses its alignment, and nvcc then
// makes sixteen loads of one byte.
template <class T>
TIGON_DEVICE Vec<T> load_vec(const T* p) {
  const uint4 raw = *reinterpret_cast<const uint4*>(p);
  return raw_cast<Vec<T>>(raw);
}
template <class T>
TIGON_DEVICE Vec<T> load_vec_stream(const T* p) {
  return raw_cast<Vec<T>>(load_once(reinterpret_cast<const uint4*>(p)));
}
// The intrinsic, because nvcc may split an assignment: that of swiglu became four stores of four
// bytes.
template <class T>
TIGON_DEVICE void store_vec(T* p, const Vec<T>& v) {
  __stwb(reinterpret_cast<uint4*>(p), raw_cast<uint4>(v));
}

// Two values per instruction.
template <class T>
TIGON_DEVICE uint32_t round_pair(float low, float high) {
  uint32_t r;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// The larger of both halves; of a number and a NaN the number.
template <class T>
TIGON_DEVICE uint32_t max_pair(uint32_t a, uint32_t b) {
  uint32_t r;
  if constexpr (std::is_same_v<T, bf16>)
    asm("max.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  else
    asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// A bf16 is the upper half of its float: one instruction per value when taken from whole words.
template <class T>
TIGON_DEVICE void unpack2(const Vec<T>& v, float (&f)[8]) {
  if constexpr (std::is_same_v<T, bf16>) {
    const uint4 raw = raw_cast<uint4>(v);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
    TIGON_UNROLL
    for (int i = 0; i < 4; ++i) {
      f[2 * i] = __uint_as_float(words[i] << 16);
      f[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
  } else {
    TIGON_UNROLL
    for (int i = 0; i < 8; ++i) f[i] = static_cast<float>(v[i]);
  }
}
template <class T>
TIGON_DEVICE Vec<T> pack2(const float (&f)[8]) {
  const uint4 r{round_pair<T>(f[0], f[1]), round_pair<T>(f[2], f[3]), round_pair<T>(f[4], f[5]),
                round_pair<T>(f[6], f[7])};
  return raw_cast<Vec<T>>(r);
}

}  // namespace tigon::device
