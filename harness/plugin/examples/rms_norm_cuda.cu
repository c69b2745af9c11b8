// SPDX-License-Identifier: Apache-2.0
// A worked example of a plug-in for a CUDA build: rms_norm forward, f32 and bf16.
// With kernels/call/tigon.h beside it, and a header that names what a call holds:
//   ./tigon describe rms_norm --call > rms_norm_call.h
//   nvcc -std=c++17 -O3 -arch=native -shared -Xcompiler -fPIC rms_norm_cuda.cu -o libmine.so
//   ./tigon --device cuda check --impl-from ./libmine.so
//   ./tigon --device cuda bench --impl-from ./libmine.so
#include <cuda_bf16.h>

#include <cstring>

#include "rms_norm_call.h"

namespace {

constexpr int kThreads = 256;  // a block per row

__device__ float load(float v) { return v; }
__device__ float load(__nv_bfloat16 v) { return __bfloat162float(v); }
template <class T>
__device__ T rounded(float v);
template <>
__device__ float rounded<float>(float v) {
  return v;
}
template <>
__device__ __nv_bfloat16 rounded<__nv_bfloat16>(float v) {
  return __float2bfloat16_rn(v);
}

struct Sizes {
  int64_t columns, x_stride, y_stride;
  float eps, offset;
  bool rounds_normal, rounds_all;
};

// Sum over the block; every thread gets it.
__device__ float block_sum(float v) {
  __shared__ float partial[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (float p : partial) sum += p;
  return sum;
}

template <class T>
__global__ void forward(const T* x, const T* w, T* y, float* rstd, Sizes s) {
  x += blockIdx.x * s.x_stride;
  y += blockIdx.x * s.y_stride;
  float squares = 0;
  for (int64_t h = threadIdx.x; h < s.columns; h += kThreads) squares += load(x[h]) * load(x[h]);
  float r = 1 / sqrtf(block_sum(squares) / static_cast<float>(s.columns) + s.eps);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  if (s.rounds_all) r = load(rounded<T>(r));
  for (int64_t h = threadIdx.x; h < s.columns; h += kThreads) {
    float normal = load(x[h]) * r;
    if (s.rounds_normal) normal = load(rounded<T>(normal));
    float gain = w ? s.offset + load(w[h]) : 1.0f;
    if (s.rounds_all) gain = load(rounded<T>(gain));
    y[h] = rounded<T>(normal * gain);
  }
}

int64_t row_stride(const tigon_tensor& t) { return t.strides ? t.strides[0] : t.sizes[1]; }

template <class T>
tigon_status run(const tigon_op*, const tigon_call* call, void* stream) {
  const rms_norm_forward_args args = rms_norm_forward_args_of(call);
  const Sizes sizes = {args.x.sizes[1],
                       row_stride(args.x),
                       row_stride(args.y),
                       static_cast<float>(args.eps),
                       static_cast<float>(args.offset),
                       args.casting != RMS_NORM_FORWARD_CASTING_GEMMA,
                       args.casting == RMS_NORM_FORWARD_CASTING_NONE};
  if (args.x.sizes[0] == 0) return {TIGON_OK, ""};
  forward<<<static_cast<unsigned>(args.x.sizes[0]), kThreads, 0,
            static_cast<cudaStream_t>(stream)>>>(
      static_cast<const T*>(args.x.data), static_cast<const T*>(args.w.data),
      static_cast<T*>(args.y.data), static_cast<float*>(args.rstd.data), sizes);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return {TIGON_OK, ""};
  return {TIGON_LAUNCH_FAILED, cudaGetErrorString(error)};
}

template <class T>
tigon_op op(int32_t dtype) {
  tigon_op made = {};
  made.abi = TIGON_ABI;
  made.dtype = dtype;
  made.device = TIGON_DEVICE_CUDA;
  made.name = "rms_norm.forward";
  made.implementation = "example";
  made.run = run<T>;
  return made;
}

const tigon_op kOps[] = {op<float>(TIGON_F32), op<__nv_bfloat16>(TIGON_BF16)};

}  // namespace

const tigon_op* tigon_find(const char* name, int32_t dtype) {
  for (const tigon_op& op : kOps)
    if (op.dtype == dtype && std::strcmp(op.name, name) == 0) return &op;
  return nullptr;
}
