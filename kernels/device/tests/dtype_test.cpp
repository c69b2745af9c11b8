// SPDX-License-Identifier: Apache-2.0
// bf16 and f16 against an independent rounding in double: all bit patterns, every midpoint.
#include "kernels/signature/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tigon {
namespace {

struct Format {
  int fraction_bits;
  int least_exponent;  // of a normal number
  int bias;
};
template <class T>
constexpr Format kFormat{};
template <>
constexpr Format kFormat<bf16>{7, -126, 127};
template <>
constexpr Format kFormat<f16>{10, -14, 15};

// Value of a pattern by the definition of the format.
template <class T>
double value_of(uint16_t bits) {
  constexpr Format f = kFormat<T>;
  const int fraction = bits & ((1 << f.fraction_bits) - 1);
  const int exponent = (bits & 0x7fff) >> f.fraction_bits;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 2 * f.bias + 1)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
  const double mantissa = std::ldexp(fraction, -f.fraction_bits) + (exponent != 0 ? 1.0 : 0.0);
  return sign * std::ldexp(mantissa, exponent != 0 ? exponent - f.bias : f.least_exponent);
}

bool is_nan(double v) { return v != v; }

template <class T>
class DTypeTest : public testing::Test {};
using Types = testing::Types<bf16, f16>;
TYPED_TEST_SUITE(DTypeTest, Types);

TYPED_TEST(DTypeTest, EveryPatternHasItsValueAndComesBack) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const TypeParam v = TypeParam::from_bits(pattern);
    const double want = value_of<TypeParam>(pattern);
    if (is_nan(want)) {
      EXPECT_TRUE(is_nan(static_cast<float>(v)));
      EXPECT_EQ(TypeParam(static_cast<float>(v)).bits, 0x7fff);
      EXPECT_EQ(TypeParam(want).bits, 0x7fff);
      continue;
    }
    ASSERT_EQ(static_cast<float>(v), want) << bits;
    ASSERT_EQ(static_cast<double>(v), want) << bits;
    ASSERT_EQ(TypeParam(static_cast<float>(v)).bits, pattern);
    ASSERT_EQ(TypeParam(static_cast<double>(v)).bits, pattern);
  }
}

// Between every two neighbours of one sign (the upper one may be infinity): the midpoint goes to
// the even one, what is beside it to the nearer one, also when float cannot tell them apart.
TYPED_TEST(DTypeTest, EveryMidpointGoesToEven) {
  constexpr uint16_t infinity = (2 * kFormat<TypeParam>.bias + 1)
                                << kFormat<TypeParam>.fraction_bits;
  for (int sign = 0; sign <= 0x8000; sign += 0x8000) {
    for (int i = 0; i < infinity; ++i) {
      const auto low = static_cast<uint16_t>(sign | i);
      const auto high = static_cast<uint16_t>(low + 1);
      const double a = value_of<TypeParam>(low);
      const double before =
          i > 0 ? value_of<TypeParam>(static_cast<uint16_t>(low - 1)) : -value_of<TypeParam>(high);
      const double b = i + 1 < infinity ? value_of<TypeParam>(high) : a + (a - before);
      const double middle = (a + b) / 2;
      const uint16_t even = (i & 1) == 0 ? low : high;
      ASSERT_EQ(TypeParam(middle).bits, even) << i;
      const double above = std::nextafter(middle, b), below = std::nextafter(middle, a);
      ASSERT_EQ(TypeParam(above).bits, high) << i;
      ASSERT_EQ(TypeParam(below).bits, low) << i;
      const auto f = static_cast<float>(middle);
      if (f != middle) continue;  // a midpoint of bf16's smallest numbers is still a float
      ASSERT_EQ(TypeParam(f).bits, even) << i;
      ASSERT_EQ(TypeParam(std::nextafter(f, static_cast<float>(b))).bits, high) << i;
      ASSERT_EQ(TypeParam(std::nextafter(f, static_cast<float>(a))).bits, low) << i;
    }
  }
}

// Nearest pattern by search, ties to even.
template <class T>
uint16_t nearest(double v) {
  const auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  const double magnitude = std::abs(v);
  uint16_t low = 0;
  uint16_t high = (2 * kFormat<T>.bias + 1) << kFormat<T>.fraction_bits;  // infinity
  const uint16_t infinity = high;
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (value_of<T>(middle) <= magnitude ? low : high) = middle;
  }
  const double a = value_of<T>(low);
  const double b = high == infinity ? std::ldexp(1.0, kFormat<T>.bias + 1) : value_of<T>(high);
  const double d = (magnitude - a) - (b - magnitude);
  const bool up = d > 0 || (d == 0 && (low & 1) != 0);
  return static_cast<uint16_t>(sign | (up ? high : low));
}

TYPED_TEST(DTypeTest, RandomNumbersGoToTheNearest) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const float f = dtype_detail::bits_as<float>(bits);
    if (is_nan(f) || std::isinf(f)) continue;
    ASSERT_EQ(TypeParam(f).bits, nearest<TypeParam>(f)) << f;
    const double d = std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53 + 0.5,
                                static_cast<int>(random() % 300) - 160);
    ASSERT_EQ(TypeParam(d).bits, nearest<TypeParam>(d)) << d;
    ASSERT_EQ(TypeParam(-d).bits, nearest<TypeParam>(-d)) << -d;
  }
}

TYPED_TEST(DTypeTest, DoubleIsRoundedOnce) {
  // Just above a midpoint of the format; float would first round it to the midpoint.
  const double unit = std::ldexp(1.0, -kFormat<TypeParam>.fraction_bits);
  const double v = 1.0 + unit / 2 + 0x1p-40;
  EXPECT_EQ(TypeParam(static_cast<float>(v)).bits, TypeParam(1.0f).bits);
  EXPECT_EQ(TypeParam(v).bits, TypeParam(1.0f).bits + 1);
}

TYPED_TEST(DTypeTest, ExtremesOfDouble) {
  const uint16_t infinity = (2 * kFormat<TypeParam>.bias + 1) << kFormat<TypeParam>.fraction_bits;
  EXPECT_EQ(TypeParam(1e300).bits, infinity);
  EXPECT_EQ(TypeParam(-1e300).bits, infinity | 0x8000);
  EXPECT_EQ(TypeParam(INFINITY).bits, infinity);
  EXPECT_EQ(TypeParam(1e-300).bits, 0);
  EXPECT_EQ(TypeParam(-1e-300).bits, 0x8000);
  EXPECT_EQ(TypeParam(0).bits, 0);
  EXPECT_EQ(static_cast<float>(TypeParam(-3)), -3.0f);
}

TYPED_TEST(DTypeTest, PropertiesFollowFromTheFormat) {
  constexpr DType t = dtype_of<const TypeParam>;
  EXPECT_EQ(size_of(t), 2u);
  EXPECT_EQ(value_of<TypeParam>(1), smallest_subnormal(t));
  EXPECT_EQ(static_cast<double>(TypeParam(1.0 + unit_roundoff(t))), 1.0);
  EXPECT_GT(static_cast<double>(TypeParam(1.0 + 1.001 * unit_roundoff(t))), 1.0);
}

TEST(DType, NamesComeBack) {
  for (const DType t : kAllDTypes) EXPECT_EQ(parse_dtype(name_of(t)), t);
  EXPECT_EQ(parse_dtype("f8"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_STREQ(name_of(dtype_of<int64_t>), "i64");
  EXPECT_EQ(size_of(DType::kI64), sizeof(int64_t));
  EXPECT_EQ(size_of(DType::kU8), 1u);
  EXPECT_EQ(unit_roundoff(DType::kF32), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(smallest_subnormal(DType::kF64), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(unit_roundoff(DType::kI32), 0.0);
}

}  // namespace
}  // namespace tigon
