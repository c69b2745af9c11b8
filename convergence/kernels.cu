// SPDX-License-Identifier: Apache-2.0
// The trainer's small kernels. All are bound by memory: 16-byte accesses, grid-stride loops.
#include "convergence/kernels.h"

#include <algorithm>

#include "kernels/device/device.h"

namespace tigon::convergence {
namespace {

constexpr int kThreads = 256;

// Blocks for n vectors; four per thread, so that the host executor starts few threads.
dim3 grid_for(int64_t vectors) {
  constexpr int64_t kPerBlock = 4 * kThreads, kMost = 2048;
  return dim3(static_cast<unsigned>(std::clamp<int64_t>(ceil_div(vectors, kPerBlock), 1, kMost)));
}

TIGON_DEVICE int64_t first_item() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
TIGON_DEVICE int64_t item_stride() { return int64_t{gridDim.x} * blockDim.x; }

template <class T>
TIGON_KERNEL(kThreads)
add_kernel(const T* a, const T* b, T* y, int64_t n) {
  constexpr int kWidth = kVec<T>;
  for (int64_t i = first_item(); i < n / kWidth; i += item_stride()) {
    float p[kWidth], q[kWidth];
    unpack(load16(a + i * kWidth), p);
    unpack(load16(b + i * kWidth), q);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) p[j] += q[j];
    store16(y + i * kWidth, pack<T>(p));
  }
}

constexpr int kRowThreads = 64;

template <class T>
TIGON_KERNEL(kRowThreads)
gather_kernel(const T* table, const int64_t* id, T* y, int64_t hidden) {
  const T* from = table + load(id + blockIdx.x) * hidden;
  T* to = y + int64_t{blockIdx.x} * hidden;
  for (int64_t i = threadIdx.x * kVec<T>; i < hidden; i += kRowThreads * kVec<T>)
    store16(to + i, load16(from + i));
}

// Block b sums the rows of the b-th distinct id; blocks beyond the last id have nothing to do.
template <class T>
TIGON_KERNEL(kRowThreads)
scatter_kernel(ScatterRows<T> a) {
  constexpr int kWidth = kVec<T>;
  const int32_t begin = load(a.first + blockIdx.x), end = load(a.first + blockIdx.x + 1);
  if (begin >= end) return;
  T* to = a.dtable + load(a.id + load(a.order + begin)) * a.hidden;
  for (int64_t i = threadIdx.x * kWidth; i < a.hidden; i += kRowThreads * kWidth) {
    float sum[kWidth], row[kWidth];
    unpack(load16(to + i), sum);
    for (int32_t place = begin; place < end; ++place) {
      unpack(load16(a.dy + load(a.order + place) * a.hidden + i), row);
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) sum[j] += row[j];
    }
    store16(to + i, pack<T>(sum));
  }
}

template <class T>
TIGON_KERNEL(kThreads)
round_kernel(const float* from, T* to, int64_t n) {
  for (int64_t i = first_item(); i < n; i += item_stride())
    store(to + i, from_float<T>(load(from + i)));
}

template <class T>
TIGON_KERNEL(kThreads)
sum_rows_kernel(const float* from, int64_t rows, int64_t columns, T* to) {
  for (int64_t j = first_item(); j < columns; j += item_stride()) {
    float sum = 0.0f;
    for (int64_t i = 0; i < rows; ++i) sum += load(from + i * columns + j);
    store(to + j, from_float<T>(sum));
  }
}

TIGON_DEVICE float sigmoid_of(float a) { return 1.0f / (1.0f + fast_exp(-a)); }

template <class T>
TIGON_KERNEL(kThreads)
add_silu_kernel(const T* x, const T* a, T* y, int64_t n) {
  for (int64_t i = first_item(); i < n; i += item_stride()) {
    const float v = to_float(load(a + i));
    store(y + i, from_float<T>(to_float(load(x + i)) + v * sigmoid_of(v)));
  }
}

template <class T>
TIGON_KERNEL(kThreads)
silu_gradient_kernel(const T* dy, const T* a, T* da, int64_t n) {
  for (int64_t i = first_item(); i < n; i += item_stride()) {
    const float v = to_float(load(a + i)), s = sigmoid_of(v);
    store(da + i, from_float<T>(to_float(load(dy + i)) * (s + v * s * (1.0f - s))));
  }
}

template <class T>
TIGON_KERNEL(kThreads)
accumulate_kernel(const T* g, float scale, bool first, float* sum, int64_t n) {
  for (int64_t i = first_item(); i < n; i += item_stride())
    store(sum + i, (first ? 0.0f : load(sum + i)) + scale * to_float(load(g + i)));
}

template <class T>
TIGON_KERNEL(kThreads)
square_kernel(const T* g, int64_t n, float* partial) {
  constexpr int kWidth = kVec<T>;
  float sum = 0.0f;
  for (int64_t i = first_item(); i < n / kWidth; i += item_stride()) {
    float f[kWidth];
    unpack(load16(g + i * kWidth), f);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) sum += f[j] * f[j];
  }
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) store(partial + blockIdx.x, sum);
}

TIGON_KERNEL(kNormPartials)
total_kernel(const float* partial, int count, float* result) {
  const int i = static_cast<int>(threadIdx.x);
  const float sum = block_sum<kNormPartials>(i < count ? load(partial + i) : 0.0f);
  if (i == 0) store(result, sum);
}

// Four fp32 values of an array that is read and written.
TIGON_DEVICE void load4(const float* p, float (&f)[4]) { unpack(load16(p), f); }

template <class T>
TIGON_KERNEL(kThreads)
adamw_kernel(AdamW<T> a) {
  constexpr int kWidth = kVec<T>;
  const float norm = sqrtf(load(a.square_norm));
  const float scale = norm <= a.clip ? 1.0f : a.clip / norm;  // a NaN stays one
  const float rate = load(a.schedule);
  const float correction1 = load(a.schedule + 1), correction2 = load(a.schedule + 2);
  for (int64_t i = first_item() * kWidth; i < a.n; i += item_stride() * kWidth) {
    float g[kWidth], w[kWidth];
    unpack(load16_stream(a.gradient + i), g);
    TIGON_UNROLL
    for (int part = 0; part < kWidth; part += 4) {
      float p[4], m[4], v[4];
      load4(a.master + i + part, p);
      load4(a.m + i + part, m);
      load4(a.v + i + part, v);
      TIGON_UNROLL
      for (int j = 0; j < 4; ++j) {
        const float grad = g[part + j] * scale;
        const float decay = i + part + j < a.decayed ? a.weight_decay : 0.0f;
        m[j] = a.beta1 * m[j] + (1.0f - a.beta1) * grad;
        v[j] = a.beta2 * v[j] + (1.0f - a.beta2) * grad * grad;
        const float step = m[j] * correction1 / (sqrtf(v[j] * correction2) + a.eps);
        p[j] -= rate * (step + decay * p[j]);
        w[part + j] = p[j];
      }
      store16(a.master + i + part, pack<float>(p));
      store16(a.m + i + part, pack<float>(m));
      store16(a.v + i + part, pack<float>(v));
    }
    store16(a.weight + i, pack<T>(w));
  }
}

}  // namespace

template <class T>
Status add(const T* a, const T* b, T* y, int64_t n, Stream stream) {
  return launch({grid_for(n / kVec<T>), dim3(kThreads), 0, stream}, add_kernel<T>, a, b, y, n);
}

template <class T>
Status gather_rows(const T* table, const int64_t* id, T* y, int64_t rows, int64_t hidden,
                   Stream stream) {
  return launch({dim3(static_cast<unsigned>(rows)), dim3(kRowThreads), 0, stream}, gather_kernel<T>,
                table, id, y, hidden);
}

template <class T>
Status scatter_rows(const ScatterRows<T>& args, Stream stream) {
  return launch({dim3(static_cast<unsigned>(args.rows)), dim3(kRowThreads), 0, stream},
                scatter_kernel<T>, args);
}

template <class T>
Status round_to(const float* from, T* to, int64_t n, Stream stream) {
  return launch({grid_for(n), dim3(kThreads), 0, stream}, round_kernel<T>, from, to, n);
}

template <class T>
Status sum_rows(const float* from, int64_t rows, int64_t columns, T* to, Stream stream) {
  return launch({grid_for(columns), dim3(kThreads), 0, stream}, sum_rows_kernel<T>, from, rows,
                columns, to);
}

template <class T>
Status add_silu(const T* x, const T* a, T* y, int64_t n, Stream stream) {
  return launch({grid_for(n), dim3(kThreads), 0, stream}, add_silu_kernel<T>, x, a, y, n);
}

template <class T>
Status silu_gradient(const T* dy, const T* a, T* da, int64_t n, Stream stream) {
  return launch({grid_for(n), dim3(kThreads), 0, stream}, silu_gradient_kernel<T>, dy, a, da, n);
}

template <class T>
Status accumulate(const T* g, float scale, bool first, float* sum, int64_t n, Stream stream) {
  return launch({grid_for(n), dim3(kThreads), 0, stream}, accumulate_kernel<T>, g, scale, first,
                sum, n);
}

template <class T>
Status sum_of_squares(const T* g, int64_t n, float* partial, float* result, Stream stream) {
  const auto blocks = std::min<unsigned>(grid_for(n / kVec<T>).x, kNormPartials);
  const Status s =
      launch({dim3(blocks), dim3(kThreads), 0, stream}, square_kernel<T>, g, n, partial);
  if (!s.ok()) return s;
  return launch({dim3(1), dim3(kNormPartials), 0, stream}, total_kernel, partial,
                static_cast<int>(blocks), result);
}

template <class T>
Status adamw(const AdamW<T>& args, Stream stream) {
  return launch({grid_for(args.n / kVec<T>), dim3(kThreads), 0, stream}, adamw_kernel<T>, args);
}

#define TIGON_INSTANTIATE(T)                                                              \
  template Status add<T>(const T*, const T*, T*, int64_t, Stream);                        \
  template Status gather_rows<T>(const T*, const int64_t*, T*, int64_t, int64_t, Stream); \
  template Status scatter_rows<T>(const ScatterRows<T>&, Stream);                         \
  template Status round_to<T>(const float*, T*, int64_t, Stream);                         \
  template Status sum_rows<T>(const float*, int64_t, int64_t, T*, Stream);                \
  template Status add_silu<T>(const T*, const T*, T*, int64_t, Stream);                   \
  template Status silu_gradient<T>(const T*, const T*, T*, int64_t, Stream);              \
  template Status accumulate<T>(const T*, float, bool, float*, int64_t, Stream);          \
  template Status sum_of_squares<T>(const T*, int64_t, float*, float*, Stream);           \
  template Status adamw<T>(const AdamW<T>&, Stream);
TIGON_INSTANTIATE(float)
TIGON_INSTANTIATE(bf16)
#undef TIGON_INSTANTIATE

}  // namespace tigon::convergence
