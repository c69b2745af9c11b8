// SPDX-License-Identifier: Apache-2.0
// Storage types of tensors: bf16 and f16 with correctly rounded conversions that give the same bits
// on the CPU and on a GPU, and a run-time name for every element type.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#if defined(__CUDACC__)
#define TIGON_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TIGON_HOST_DEVICE inline __attribute__((always_inline))
#endif

namespace tigon {

namespace dtype_detail {

template <class To, class From>
TIGON_HOST_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// A float that rounds to any format of at most 22 bits as the double itself would: inexact results
// are rounded to odd, so a second rounding to nearest never sees a false tie (Boldo and Melquiond
// 2008).
TIGON_HOST_DEVICE float round_to_odd(double d) {
  const float nearest = static_cast<float>(d);
  const double back = static_cast<double>(nearest);
  if (back == d || d != d) return nearest;
  uint32_t bits = bits_as<uint32_t>(nearest);
  if (fabs(back) > fabs(d)) --bits;  // towards zero; infinity becomes the largest finite value
  return bits_as<float>(bits | 1u);
}

TIGON_HOST_DEVICE uint16_t bf16_bits(float f) {
#if defined(__CUDA_ARCH__)
  uint16_t r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return r;
#else
  const uint32_t b = bits_as<uint32_t>(f);
  const uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;  // to nearest, ties to even
  return static_cast<uint16_t>((b & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
#endif
}

TIGON_HOST_DEVICE float bf16_value(uint16_t bits) {
  return bits_as<float>(static_cast<uint32_t>(bits) << 16);
}

TIGON_HOST_DEVICE uint16_t f16_bits(float f) {
#if defined(__CUDA_ARCH__)
  uint16_t r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return r;
#else
  const uint32_t b = bits_as<uint32_t>(f);
  const uint32_t sign = (b >> 16) & 0x8000u;
  const uint32_t magnitude = b & 0x7fffffffu;
  // Below 2^-14 the sum with 0.5 has the f16 result in its low bits, rounded by the addition.
  const uint32_t small = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t r = magnitude < 0x38800000u ? small : normal;
  r = magnitude >= 0x477ff000u ? 0x7c00u : r;  // 65520 and above
  r = magnitude > 0x7f800000u ? 0x7fffu : (r | sign);
  return static_cast<uint16_t>(r);
#endif
}

TIGON_HOST_DEVICE float f16_value(uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
  return r;
#else
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = (bits & 0x7fffu) << 13;
  const uint32_t exponent = magnitude & 0x0f800000u;
  const uint32_t normal = magnitude + (112u << 23);
  const uint32_t special = magnitude + (224u << 23);  // infinity and NaN
  const uint32_t small = bits_as<uint32_t>(bits_as<float>(magnitude + (113u << 23)) - 0x1p-14f);
  uint32_t r = exponent == 0 ? small : normal;
  r = exponent == 0x0f800000u ? special : r;
  return bits_as<float>(r | sign);
#endif
}

}  // namespace dtype_detail

// Brain float: 8 exponent bits, 7 fraction bits. Conversions round to nearest, ties to even; a NaN
// becomes 0x7fff, as on the GPU.
struct bf16 {
  uint16_t bits;

  bf16() = default;
  TIGON_HOST_DEVICE explicit bf16(float f) : bits(dtype_detail::bf16_bits(f)) {}
  TIGON_HOST_DEVICE explicit bf16(double d) : bf16(dtype_detail::round_to_odd(d)) {}
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  TIGON_HOST_DEVICE explicit bf16(I i) : bf16(static_cast<double>(i)) {}
  TIGON_HOST_DEVICE static bf16 from_bits(uint16_t bits) {
    bf16 r;
    r.bits = bits;
    return r;
  }
  TIGON_HOST_DEVICE explicit operator float() const { return dtype_detail::bf16_value(bits); }
  TIGON_HOST_DEVICE explicit operator double() const { return dtype_detail::bf16_value(bits); }
  // Of the bits: -0 differs from 0, a NaN equals itself.
  friend TIGON_HOST_DEVICE bool operator==(bf16 a, bf16 b) { return a.bits == b.bits; }
};

// IEEE binary16: 5 exponent bits, 10 fraction bits. Conversions as for bf16.
struct f16 {
  uint16_t bits;

  f16() = default;
  TIGON_HOST_DEVICE explicit f16(float f) : bits(dtype_detail::f16_bits(f)) {}
  TIGON_HOST_DEVICE explicit f16(double d) : f16(dtype_detail::round_to_odd(d)) {}
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  TIGON_HOST_DEVICE explicit f16(I i) : f16(static_cast<double>(i)) {}
  TIGON_HOST_DEVICE static f16 from_bits(uint16_t bits) {
    f16 r;
    r.bits = bits;
    return r;
  }
  TIGON_HOST_DEVICE explicit operator float() const { return dtype_detail::f16_value(bits); }
  TIGON_HOST_DEVICE explicit operator double() const { return dtype_detail::f16_value(bits); }
  friend TIGON_HOST_DEVICE bool operator==(f16 a, f16 b) { return a.bits == b.bits; }
};

static_assert(std::is_trivially_copyable_v<bf16> && sizeof(bf16) == 2);
static_assert(std::is_trivially_copyable_v<f16> && sizeof(f16) == 2);

// Element types of tensors, as named in records and on the command line.
enum class DType { kF64, kF32, kBF16, kF16, kI64, kI32, kU8 };
inline constexpr DType kAllDTypes[] = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16,
                                       DType::kI64, DType::kI32, DType::kU8};

// Bytes of one element.
constexpr size_t size_of(DType t) {
  switch (t) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

constexpr const char* name_of(DType t) {
  switch (t) {
    case DType::kF64:
      return "f64";
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI64:
      return "i64";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
  }
  return "?";
}

// The type of that name, or nothing.
constexpr std::optional<DType> parse_dtype(std::string_view name) {
  for (DType t : kAllDTypes)
    if (name == name_of(t)) return t;
  return std::nullopt;
}

namespace dtype_detail {
template <class T>
struct DTypeOf;  // not an element type of a tensor
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::kF64> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::kF32> {};
template <>
struct DTypeOf<bf16> : std::integral_constant<DType, DType::kBF16> {};
template <>
struct DTypeOf<f16> : std::integral_constant<DType, DType::kF16> {};
template <>
struct DTypeOf<int64_t> : std::integral_constant<DType, DType::kI64> {};
template <>
struct DTypeOf<int32_t> : std::integral_constant<DType, DType::kI32> {};
template <>
struct DTypeOf<uint8_t> : std::integral_constant<DType, DType::kU8> {};
}  // namespace dtype_detail

template <class T>
inline constexpr DType dtype_of = dtype_detail::DTypeOf<std::remove_cv_t<T>>::value;

// Largest relative error of rounding to nearest: half the distance from 1 to the next value. 0 for
// integers.
constexpr double unit_roundoff(DType t) {
  switch (t) {
    case DType::kF64:
      return 0x1p-53;
    case DType::kF32:
      return 0x1p-24;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11;
    default:
      return 0;
  }
}

// The smallest positive value. 0 for integers.
constexpr double smallest_subnormal(DType t) {
  switch (t) {
    case DType::kF64:
      return 0x1p-1074;
    case DType::kF32:
      return 0x1p-149;
    case DType::kBF16:
      return 0x1p-133;
    case DType::kF16:
      return 0x1p-24;
    default:
      return 0;
  }
}

}  // namespace tigon
