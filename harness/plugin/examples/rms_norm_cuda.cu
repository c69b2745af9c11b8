// A worked example of a plug-in for a CUDA build: rms_norm forward, f32 and bf16.
// With tigon_plugin.h beside it:
//   nvcc -std=c++17 -O3 -arch=native -shared -Xcompiler -fPIC rms_norm_cuda.cu -o libmine.so
//   ./tigon --device cuda check --impl-from ./libmine.so
//   ./tigon --device cuda bench --impl-from ./libmine.so
#include <cuda_bf16.h>

#include "tigon_plugin.h"

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
  bool rounds_twice;
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
  const float r = 1 / sqrtf(block_sum(squares) / static_cast<float>(s.columns) + s.eps);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  for (int64_t h = threadIdx.x; h < s.columns; h += kThreads) {
    float normal = load(x[h]) * r;
    if (s.rounds_twice) normal = load(rounded<T>(normal));
    y[h] = rounded<T>(normal * (w ? s.offset + load(w[h]) : 1.0f));
  }
}

template <class T>
void launch(const tigon_call* call) {
  const tigon_tensor *x = tigon_find(call, "x"), *w = tigon_find(call, "w"),
                     *y = tigon_find(call, "y"), *rstd = tigon_find(call, "rstd");
  const Sizes sizes = {x->shape[1],
                       x->stride[0],
                       y->stride[0],
                       static_cast<float>(tigon_number(call, "eps", 1e-6)),
                       static_cast<float>(tigon_number(call, "offset", 0)),
                       tigon_chosen(call, "casting", "llama") != 0};
  if (x->shape[0] == 0) return;
  const auto stream = static_cast<cudaStream_t>(call->stream);
  forward<<<static_cast<unsigned>(x->shape[0]), kThreads, 0, stream>>>(
      static_cast<const T*>(x->data), static_cast<const T*>(w ? w->data : nullptr),
      static_cast<T*>(y->data), static_cast<float*>(rstd->data), sizes);
}

int32_t run(const tigon_call* call, const char** message) {
  call->dtype == TIGON_F32 ? launch<float>(call) : launch<__nv_bfloat16>(call);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return TIGON_OK;
  *message = cudaGetErrorString(error);
  return TIGON_FAILED;
}

const int32_t kTypes[] = {TIGON_F32, TIGON_BF16};
const tigon_kernel kForward = {sizeof(tigon_kernel),
                               "rms_norm",
                               "forward",
                               "example",
                               TIGON_DEVICE_CUDA,
                               2,
                               kTypes,
                               nullptr,
                               nullptr,
                               run};
const tigon_kernel* const kKernels[] = {&kForward};
const tigon_plugin kPlugin = {
    sizeof(tigon_plugin), TIGON_PLUGIN_ABI, 1, "rms_norm_cuda", "1.0", kKernels};

}  // namespace

const tigon_plugin* tigon_plugin_get(uint32_t abi) {
  return abi == TIGON_PLUGIN_ABI ? &kPlugin : nullptr;
}
