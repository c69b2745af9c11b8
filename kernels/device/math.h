// SPDX-License-Identifier: Apache-2.0
// Fast float functions for kernels. Errors are relative and in units in the last place (ulp) of
// float; NaN and infinity behave as in <cmath>, and results below the normal range are not flushed.
#pragma once
#include "kernels/device/platform.h"

#if TIGON_GPU
#include "kernels/device/math_cuda.h"
#else
#include "kernels/device/math_host.h"
#endif

namespace tigon {

// e^x. GPU: 2 + |1.16 x| ulp (2^x in hardware; the product x * log2(e) is rounded first).
TIGON_DEVICE float fast_exp(float x) { return device::exp(x); }
// The same, but a result below 2^-126 may become 0, which saves three of five GPU instructions.
TIGON_DEVICE float fast_exp_flushed(float x) { return device::exp_flushed(x); }
// 2^x, 2 ulp.
TIGON_DEVICE float fast_exp2(float x) { return device::exp2(x); }
// The same, flushed.
TIGON_DEVICE float fast_exp2_flushed(float x) { return device::exp2_flushed(x); }
// Natural and binary logarithm, 1 ulp. Not __logf: its error is absolute, which loses every digit
// of log(1 + small), the usual sum of a confident softmax.
TIGON_DEVICE float fast_log(float x) { return logf(x); }
TIGON_DEVICE float fast_log2(float x) { return log2f(x); }
// Binary logarithm in one GPU instruction: off by 2^-22 for x from 1/2 to 2, by 2^-22 of the result
// beyond. For terms beside others of the order of 1.
TIGON_DEVICE float rough_log2(float x) { return device::rough_log2(x); }
// a / b, 2 ulp. Not __fdividef, which gives 0 for |b| > 2^126. |b| < 2^-127 gives infinity.
TIGON_DEVICE float fast_div(float a, float b) { return device::divide(a, b); }
// The same where |b| is from 2^-126 to 2^126, which saves four of six GPU instructions.
TIGON_DEVICE float fast_div_normal(float a, float b) { return device::divide_normal(a, b); }
// 1 / sqrt(x), 2 ulp.
TIGON_DEVICE float fast_rsqrt(float x) { return rsqrtf(x); }
// 2 ulp on the GPU, 4 on the host, also near 0.
TIGON_DEVICE float fast_tanh(float x) { return device::tanh(x); }

// 1 / (1 + e^-x), with a small relative error where x is large and negative, too.
TIGON_DEVICE float sigmoid(float x) {
  const float e = fast_exp(-fabsf(x));
  return fast_div_normal(x >= 0.0f || x != x ? 1.0f : e, 1.0f + e);
}

}  // namespace tigon
