// SPDX-License-Identifier: Apache-2.0
// Elementary functions and sums as kernels compute them, over arrays, for rounding.h.
#pragma once
#include <cstdint>

#include "kernels/signature/status.h"

namespace tigon {

// Functions of kernels/device/math.h.
enum class Elementary { kExp, kExpFlushed, kExp2, kLog, kRsqrt, kTanh, kSigmoid, kReciprocal };

// out[i] = f(x[i]); fp32 in device memory.
Status elementary(Elementary f, const float* x, float* out, int64_t n, Stream stream);

// out[row] = the sum of a row of n, and of its squares with `squares`, as a block of 256 threads
// adds it.
Status row_sums(const float* x /* [rows, n] */, float* out /* [rows] */, int64_t rows, int64_t n,
                bool squares, Stream stream);

}  // namespace tigon
