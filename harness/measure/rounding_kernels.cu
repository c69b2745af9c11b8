// SPDX-License-Identifier: Apache-2.0
// One element per thread, or one row per block; nothing here is timed.
#include "harness/measure/rounding_kernels.h"

#include "kernels/device/device.h"

namespace tigon {
namespace {

constexpr int kThreads = 256;

template <Elementary kFunction>
TIGON_DEVICE float value_of(float x) {
  if constexpr (kFunction == Elementary::kExp) return fast_exp(x);
  if constexpr (kFunction == Elementary::kExpFlushed) return fast_exp_flushed(x);
  if constexpr (kFunction == Elementary::kExp2) return fast_exp2(x);
  if constexpr (kFunction == Elementary::kLog) return fast_log(x);
  if constexpr (kFunction == Elementary::kRsqrt) return fast_rsqrt(x);
  if constexpr (kFunction == Elementary::kTanh) return fast_tanh(x);
  if constexpr (kFunction == Elementary::kSigmoid) return sigmoid(x);
  if constexpr (kFunction == Elementary::kReciprocal) return fast_div(1.0f, x);
}

template <Elementary kFunction>
TIGON_KERNEL(kThreads)
elementary_kernel(const float* x /* [n] */, float* out /* [n] */, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) store(out + i, value_of<kFunction>(load(x + i)));
}

TIGON_KERNEL(kThreads)
row_sums_kernel(const float* x /* [rows, n] */, float* out /* [rows] */, int64_t n, bool squares) {
  const float* row = x + static_cast<int64_t>(blockIdx.x) * n;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const float v = load(row + i);
    sum += squares ? v * v : v;
  }
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) store(out + blockIdx.x, sum);
}

template <Elementary kFunction>
Status run(const float* x, float* out, int64_t n, Stream stream) {
  const auto blocks = static_cast<unsigned>(ceil_div(n, int64_t{kThreads}));
  return launch({dim3(blocks), dim3(kThreads), 0, stream}, elementary_kernel<kFunction>, x, out, n);
}

}  // namespace

Status elementary(Elementary f, const float* x, float* out, int64_t n, Stream stream) {
  switch (f) {
    case Elementary::kExp:
      return run<Elementary::kExp>(x, out, n, stream);
    case Elementary::kExpFlushed:
      return run<Elementary::kExpFlushed>(x, out, n, stream);
    case Elementary::kExp2:
      return run<Elementary::kExp2>(x, out, n, stream);
    case Elementary::kLog:
      return run<Elementary::kLog>(x, out, n, stream);
    case Elementary::kRsqrt:
      return run<Elementary::kRsqrt>(x, out, n, stream);
    case Elementary::kTanh:
      return run<Elementary::kTanh>(x, out, n, stream);
    case Elementary::kSigmoid:
      return run<Elementary::kSigmoid>(x, out, n, stream);
    case Elementary::kReciprocal:
      return run<Elementary::kReciprocal>(x, out, n, stream);
  }
  return invalid("elementary: no such function");
}

Status row_sums(const float* x, float* out, int64_t rows, int64_t n, bool squares, Stream stream) {
  return launch({dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0, stream}, row_sums_kernel, x,
                out, n, squares);
}

}  // namespace tigon
