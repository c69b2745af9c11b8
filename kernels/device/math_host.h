// SPDX-License-Identifier: Apache-2.0
// Host bodies of math.h: polynomials without a branch or a call, so that loops over the values of a
// vector can be vectorised.
#pragma once
#include <bit>
#include <cmath>

#include "kernels/device/platform.h"

namespace tigon::device {

// 2^n * m for n in [-150, 128], in two steps because 2^n alone may not be a normal number.
TIGON_DEVICE float scale(float m, int n) {
  const int half = n >> 1;
  const float a = std::bit_cast<float>((half + 127) << 23);
  const float b = std::bit_cast<float>((n - half + 127) << 23);
  return m * a * b;
}

// Rounds to an integer by pushing the fraction out of the mantissa; |x| < 2^22.
TIGON_DEVICE float round_small(float x) { return (x + 12582912.0f) - 12582912.0f; }

// e^r for |r| <= ln(2) / 2, coefficients from Cephes' expf.
TIGON_DEVICE float exp_reduced(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * r * r + r + 1.0f;
}

TIGON_DEVICE float clamp(float x, float low, float high) {
  const float y = x > low ? x : low;
  return y < high ? y : high;
}

TIGON_DEVICE float exp(float x) {
  const float c = clamp(x, -104.0f, 89.0f);  // beyond, the result is 0 or infinity
  const float n = round_small(c * 1.44269504f);
  const float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;  // ln(2) in two parts
  const float y = scale(exp_reduced(r), static_cast<int>(n));
  return x == x ? y : x;
}

TIGON_DEVICE float exp_flushed(float x) { return exp(x); }

TIGON_DEVICE float exp2(float x) {
  const float c = clamp(x, -150.0f, 128.0f);
  const float n = round_small(c);
  const float y = scale(exp_reduced((c - n) * 0.69314718f), static_cast<int>(n));
  return x == x ? y : x;
}

TIGON_DEVICE float exp2_flushed(float x) { return exp2(x); }

TIGON_DEVICE float rough_log2(float x) { return log2f(x); }

TIGON_DEVICE float divide(float a, float b) { return a / b; }
TIGON_DEVICE float divide_normal(float a, float b) { return a / b; }

// Near 0 Cephes' polynomial, elsewhere from e^2|x|.
TIGON_DEVICE float tanh(float x) {
  const float a = x < 0.0f ? -x : x;
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * x + x;
  const float big = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  const float y = a < 0.625f ? small : (x < 0.0f ? -big : big);
  return x == x ? y : x;
}

}  // namespace tigon::device
