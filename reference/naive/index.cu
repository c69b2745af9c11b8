// SPDX-License-Identifier: Apache-2.0
// One thread per token, but for take_rows and zero_ignored: one block per token.
#include <cuda_runtime.h>

#include "reference/naive/index.h"

namespace tigon::naive::index {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t tokens) {
  return static_cast<unsigned>((tokens + kThreads - 1) / kThreads);
}

__device__ int64_t this_thread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ float nan_value() { return __int_as_float(0x7fffffff); }
__device__ bool valid(int64_t target, int64_t classes) { return target >= 0 && target < classes; }

__global__ void not_ignored_kernel(const int64_t* target, int64_t tokens, int64_t ignore_index,
                                   float* y) {
  const int64_t t = this_thread();
  if (t < tokens) y[t] = target[t] == ignore_index ? 0.0f : 1.0f;
}

__global__ void gather_kernel(const float* x, int64_t classes, const int64_t* target,
                              int64_t tokens, float* y) {
  const int64_t t = this_thread();
  if (t < tokens) y[t] = valid(target[t], classes) ? x[t * classes + target[t]] : nan_value();
}

__global__ void take_rows_kernel(const float* x, int64_t rows, int64_t x_pitch, const int64_t* row,
                                 float* y, int64_t y_pitch, int64_t columns) {
  const int64_t t = blockIdx.x;
  const bool good = valid(row[t], rows);
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x)
    y[t * y_pitch + j] = good ? x[row[t] * x_pitch + j] : nan_value();
}

__global__ void scatter_kernel(float* y, int64_t classes, const int64_t* target, int64_t tokens,
                               const float* value) {
  const int64_t t = this_thread();
  if (t >= tokens) return;
  const bool good = valid(target[t], classes);
  y[t * classes + (good ? target[t] : 0)] = good ? value[t] : nan_value();
}

template <class T>
__global__ void log_sum_exp_kernel(const T* x, int64_t pitch, const float* log_softmax,
                                   int64_t classes, int64_t tokens, float* lse) {
  const int64_t t = this_thread();
  if (t >= tokens) return;
  for (int64_t j = 0; j < classes; ++j) {
    const float logit = static_cast<float>(x[t * pitch + j]);
    if (!isfinite(logit)) continue;
    lse[t] = logit - log_softmax[t * classes + j];
    return;
  }
  lse[t] = static_cast<float>(x[t * pitch]);
}

template <class Bits>
__global__ void zero_ignored_kernel(Bits* y, int64_t pitch, int64_t columns, const int64_t* target,
                                    int64_t ignore_index) {
  const int64_t t = blockIdx.x;
  if (target[t] != ignore_index) return;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) y[t * pitch + j] = 0;
}

}  // namespace

cudaError_t not_ignored(const Eager::Targets& target, int64_t ignore_index, const Tensor& y,
                        Stream stream) {
  const int64_t tokens = target.shape[0];
  not_ignored_kernel<<<blocks_for(tokens), kThreads, 0, stream>>>(target.data, tokens, ignore_index,
                                                                  static_cast<float*>(y.data));
  return cudaGetLastError();
}

cudaError_t gather(const Tensor& x, const Eager::Targets& target, const Tensor& y, Stream stream) {
  const int64_t tokens = x.shape[1];
  gather_kernel<<<blocks_for(tokens), kThreads, 0, stream>>>(static_cast<const float*>(x.data),
                                                             x.shape[2], target.data, tokens,
                                                             static_cast<float*>(y.data));
  return cudaGetLastError();
}

cudaError_t take_rows(const Tensor& x, const int64_t* row, const Tensor& y, Stream stream) {
  take_rows_kernel<<<static_cast<unsigned>(y.shape[1]), kThreads, 0, stream>>>(
      static_cast<const float*>(x.data), x.shape[1], x.stride[1], row, static_cast<float*>(y.data),
      y.stride[1], y.shape[2]);
  return cudaGetLastError();
}

cudaError_t scatter(const Tensor& y, const Eager::Targets& target, const Tensor& value,
                    Stream stream) {
  const int64_t tokens = y.shape[1];
  scatter_kernel<<<blocks_for(tokens), kThreads, 0, stream>>>(
      static_cast<float*>(y.data), y.shape[2], target.data, tokens,
      static_cast<const float*>(value.data));
  return cudaGetLastError();
}

cudaError_t log_sum_exp(const Tensor& x, const Tensor& log_softmax, const Tensor& lse,
                        Stream stream) {
  const auto launch = [&]<class T>(T) {
    const int64_t tokens = x.shape[1];
    log_sum_exp_kernel<<<blocks_for(tokens), kThreads, 0, stream>>>(
        static_cast<const T*>(x.data), x.stride[1], static_cast<const float*>(log_softmax.data),
        x.shape[2], tokens, static_cast<float*>(lse.data));
  };
  if (x.type == DType::kBF16)
    launch(bf16{});
  else if (x.type == DType::kF16)
    launch(f16{});
  else
    launch(float{});
  return cudaGetLastError();
}

cudaError_t zero_ignored(const Tensor& y, const Eager::Targets& target, int64_t ignore_index,
                         Stream stream) {
  const auto launch = [&]<class Bits>(Bits) {
    zero_ignored_kernel<<<static_cast<unsigned>(y.shape[1]), kThreads, 0, stream>>>(
        static_cast<Bits*>(y.data), y.stride[1], y.shape[2], target.data, ignore_index);
  };
  if (size_of(y.type) == 2)
    launch(uint16_t{});
  else
    launch(uint32_t{});
  return cudaGetLastError();
}

}  // namespace tigon::naive::index
