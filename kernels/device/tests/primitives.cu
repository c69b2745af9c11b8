// SPDX-License-Identifier: Apache-2.0
// Kernels of primitives.h.
#include "kernels/device/tests/primitives.h"

#include "kernels/device/cluster_exchange.h"
#include "kernels/device/device.h"

namespace tigon::device_tests {

namespace {

constexpr unsigned kAll = 0xffffffffu;

TIGON_KERNEL(64) warp_ops_kernel(const int* in, int* out, int n) {
  const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  const unsigned lane = threadIdx.x % 32;
  const int v = i < n ? in[i] : 0;
  int r[kWarpOps];
  r[0] = __shfl_up_sync(kAll, v, 1);
  r[1] = __shfl_down_sync(kAll, v, 2);
  r[2] = __shfl_sync(kAll, v, 5, 8);
  r[3] = __shfl_xor_sync(kAll, v, 3);
  if (lane < 16)  // two groups of one warp apart
    r[4] = __shfl_xor_sync(0x0000ffffu, v, 8);
  else
    r[4] = __shfl_down_sync(0xffff0000u, v, 1);
  r[5] = __any_sync(kAll, v > 90);
  r[6] = __all_sync(kAll, v >= 0);
  r[7] = static_cast<int>(__ballot_sync(kAll, v & 1));
  r[8] = static_cast<int>(__reduce_add_sync(kAll, static_cast<unsigned>(v)));
  r[9] = static_cast<int>(__reduce_max_sync(kAll, static_cast<unsigned>(v)));
  r[10] = static_cast<int>(__match_any_sync(kAll, v));
  r[11] = warp_sum(v);
  r[12] = warp_reduce(v, Max{});
  r[13] = warp_reduce<8>(v, Sum{});
  r[14] = static_cast<int>(__shfl_xor_sync(kAll, static_cast<long long>(v) << 32, 1) >> 32);
  r[15] = static_cast<int>(__shfl_sync(kAll, static_cast<float>(v), 31));
  if (i >= n) return;
  for (int k = 0; k < kWarpOps; ++k) out[i * kWarpOps + k] = r[k];
}

TIGON_KERNEL(96) reverse_kernel(const int* in, int* out, unsigned ints) {
  TIGON_DYNAMIC_SHARED(int, shared);
  int* tile = shared + (ints - 96);
  const unsigned first = blockIdx.x * 96;
  tile[threadIdx.x] = in[first + threadIdx.x];
  __syncthreads();
  out[first + threadIdx.x] = tile[95 - threadIdx.x];
}

template <int kThreads>
TIGON_KERNEL(kThreads)
block_reductions_kernel(const float* x, int reductions, float* sums, float* maxima) {
  float sum = 0.0f, maximum = 0.0f;
  for (int k = 0; k < reductions; ++k) {
    const float v = x[k * kThreads + static_cast<int>(threadIdx.x)];
    sum += block_sum<kThreads>(v);
    sum += block_sum<kThreads>(1.0f);  // at once, through the same scratch
    maximum += block_reduce<kThreads>(v, Max{});
  }
  sums[threadIdx.x] = sum;
  maxima[threadIdx.x] = maximum;
}

struct MaxSum {
  float maximum, sum;
};
struct Join {
  TIGON_DEVICE MaxSum operator()(MaxSum a, MaxSum b) const {
    const float m = Max{}(a.maximum, b.maximum);
    return {m, a.sum * fast_exp(a.maximum - m) + b.sum * fast_exp(b.maximum - m)};
  }
};

TIGON_KERNEL(128) online_softmax_kernel(const float* x, int n, float* maximum, float* sum) {
  MaxSum s{x[threadIdx.x], 1.0f};
  for (int i = static_cast<int>(threadIdx.x) + 128; i < n; i += 128)
    s = Join{}(s, MaxSum{x[i], 1.0f});
  s = block_reduce<128>(s, Join{});
  if (threadIdx.x == 0) {
    *maximum = s.maximum;
    *sum = s.sum;
  }
}

TIGON_KERNEL(64) cluster_kernel(int* out) {
  TIGON_SHARED(int, own, [2]);
  if (threadIdx.x == 0) own[0] = static_cast<int>(blockIdx.x) + 1;
  cluster_sync();
  int sum = 0;
  for (unsigned r = 0; r < cluster_size(); ++r) sum += *cluster_map(&own[0], r);
  if (threadIdx.x == cluster_rank()) out[blockIdx.x] = sum;
  cluster_sync();
}

struct JoinInts {
  TIGON_DEVICE int operator()(int a, int b) const { return a + b; }
  TIGON_DEVICE int warp(int v) const { return warp_sum(v); }
};

TIGON_KERNEL(64) exchange_kernel(int* out) {
  using Scratch = ExchangeScratch<int, 64>;
  TIGON_SHARED(Scratch, scratch, [1]);
  begin_exchange(scratch[0]);
  const int sum = cluster_exchange<64>(static_cast<int>(blockIdx.x), JoinInts{}, scratch[0]);
  if (threadIdx.x == 63) out[blockIdx.x] = sum;
}

TIGON_KERNEL(128) atomics_kernel(unsigned* out, float* sum) {
  const unsigned i = blockIdx.x * 128 + threadIdx.x;
  atomicAdd(&out[0], 1u);
  atomicMax(&out[1], i);
  atomicMin(&out[2], i);
  atomicOr(&out[3], 1u << (i % 32));
  atomicAnd(&out[4], ~(1u << (i % 8)));
  atomicXor(&out[5], i);
  atomicAdd(sum, 0.5f);
  unsigned seen = out[6] == ~0u ? 1u : 0u;  // never: a plain read beside the loop below
  do {
    const unsigned expected = seen;
    seen = atomicCAS(&out[7], expected, expected + 2);
    if (seen == expected) break;
  } while (true);
}

TIGON_KERNEL(1024) indices_kernel(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  out[i] = i;
}

template <int kThreads>
TIGON_DEVICE void store_row_sum(float sum, float* out) {
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

TIGON_KERNEL(128) async_kernel(const float* x, int tiles, float* out) {
  constexpr int kPerThread = kTile / 128;
  TIGON_SHARED(float4, stage, [2 * kTile / 4]);
  float* buffer = reinterpret_cast<float*>(&stage[0]);
  const float* row = x + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(tiles) * kTile;
  const auto fetch = [&](int k) {
    for (int j = 0; j < kPerThread && k < tiles; j += 4) {
      const int i = static_cast<int>(threadIdx.x) * kPerThread + j;
      async_copy<16>(buffer + k % 2 * kTile + i, row + static_cast<size_t>(k) * kTile + i);
    }
    async_commit();
  };
  float sum = 0.0f;
  fetch(0);
  for (int k = 0; k < tiles; ++k) {
    fetch(k + 1);
    async_wait<1>();
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTile; i += 128)
      sum += buffer[k % 2 * kTile + i];
    __syncthreads();
  }
  async_wait<0>();
  store_row_sum<128>(sum, out);
}

TIGON_KERNEL(128) bulk_kernel(const float* x, int tiles, float* out) {
  if constexpr (kHasBulkCopy) {
    constexpr unsigned kBytes = kTile * sizeof(float);
    TIGON_SHARED(float4, stage, [2 * kTile / 4]);
    TIGON_SHARED(Mbarrier, full, [2]);
    float* buffer = reinterpret_cast<float*>(&stage[0]);
    const float* row = x + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(tiles) * kTile;
    if (threadIdx.x == 0) {
      mbarrier_init(&full[0], 1);
      mbarrier_init(&full[1], 1);
      mbarrier_fence_init();
    }
    __syncthreads();
    const auto fetch = [&](int k) {
      if (threadIdx.x != 0 || k >= tiles) return;
      mbarrier_arrive_expect(&full[k % 2], kBytes);
      bulk_copy(buffer + k % 2 * kTile, row + static_cast<size_t>(k) * kTile, kBytes, &full[k % 2]);
    };
    float sum = 0.0f;
    fetch(0);
    for (int k = 0; k < tiles; ++k) {
      fetch(k + 1);
      mbarrier_wait(&full[k % 2], static_cast<unsigned>(k / 2) & 1u);
      for (int i = static_cast<int>(threadIdx.x); i < kTile; i += 128)
        sum += buffer[k % 2 * kTile + i];
      bulk_fence();
      __syncthreads();
    }
    store_row_sum<128>(sum, out);
  } else {
    (void)x, (void)tiles, (void)out;
  }
}

template <class T>
TIGON_KERNEL(64)
convert_kernel(const float* x, T* rounded, float* back, int n) {
  constexpr int kV = kVec<T>;
  const int stride = static_cast<int>(gridDim.x) * 64;
  for (int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x); i < n / kV; i += stride) {
    float f[kV];
    for (int k = 0; k < kV; ++k) f[k] = load_stream(x + i * kV + k);
    store16(rounded + i * kV, pack<T>(f));
    unpack(load16(rounded + i * kV), f);
    for (int k = 0; k < kV; ++k) store(back + i * kV + k, f[k]);
  }
  for (int i = n / kV * kV + static_cast<int>(blockIdx.x * 64 + threadIdx.x); i < n; i += stride) {
    store(rounded + i, from_float<T>(x[i]));
    back[i] = to_float(load(rounded + i));
  }
}

TIGON_KERNEL(64) math_kernel(const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  if (i >= n) return;
  const float v = x[i];
  const float r[kMathFunctions] = {fast_exp(v),   fast_exp2(v), fast_log(v), fast_log2(v),
                                   fast_rsqrt(v), fast_tanh(v), sigmoid(v),  fast_div(1.0f, v)};
  for (int k = 0; k < kMathFunctions; ++k) y[k * n + i] = r[k];
}

template <class T>
TIGON_KERNEL(64)
copy_elements_kernel(const T* in, T* out, int n) {
  const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  if (i >= n) return;
  if (i % 2 == 0)
    store(out + i, load(in + i));
  else
    store(out + i, load_stream(in + i));
}

unsigned blocks_of(int n) { return static_cast<unsigned>(ceil_div(n, 64)); }

}  // namespace

Status warp_ops(const int* in, int* out, int n) {
  return launch({.grid = blocks_of(n), .block = 64}, warp_ops_kernel, in, out, n);
}

Status reverse_blocks(const int* in, int* out, int blocks, size_t shared_bytes) {
  return launch({.grid = static_cast<unsigned>(blocks), .block = 96, .shared_bytes = shared_bytes},
                reverse_kernel, in, out, static_cast<unsigned>(shared_bytes / sizeof(int)));
}

Status block_reductions(int threads, const float* x, int reductions, float* sums, float* maxima) {
  const auto run = [&](void (*kernel)(const float*, int, float*, float*)) {
    return launch({.grid = 1, .block = static_cast<unsigned>(threads)}, kernel, x, reductions, sums,
                  maxima);
  };
  switch (threads) {
    case 32:
      return run(block_reductions_kernel<32>);
    case 64:
      return run(block_reductions_kernel<64>);
    case 96:
      return run(block_reductions_kernel<96>);
    case 256:
      return run(block_reductions_kernel<256>);
    case 1024:
      return run(block_reductions_kernel<1024>);
    default:
      return invalid("threads must be 32, 64, 96, 256 or 1024");
  }
}

Status online_softmax(const float* x, int n, float* maximum, float* sum) {
  return launch({.grid = 1, .block = 128}, online_softmax_kernel, x, n, maximum, sum);
}

Status cluster_sums(int blocks, unsigned cluster, int* out) {
  return launch({.grid = static_cast<unsigned>(blocks), .block = 64, .cluster = cluster},
                cluster_kernel, out);
}

Status exchanged_sums(int blocks, unsigned cluster, int* out) {
  return launch({.grid = static_cast<unsigned>(blocks), .block = 64, .cluster = cluster},
                exchange_kernel, out);
}

Status atomics(int blocks, unsigned* out, float* sum) {
  return launch({.grid = static_cast<unsigned>(blocks), .block = 128}, atomics_kernel, out, sum);
}

Status indices(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
               unsigned* out) {
  return launch({.grid = dim3(gx, gy, gz), .block = dim3(bx, by, bz)}, indices_kernel, out);
}

Status async_row_sums(const float* x, int rows, int tiles, float* out) {
  return launch({.grid = static_cast<unsigned>(rows), .block = 128}, async_kernel, x, tiles, out);
}

Status bulk_row_sums(const float* x, int rows, int tiles, float* out) {
  return launch({.grid = static_cast<unsigned>(rows), .block = 128}, bulk_kernel, x, tiles, out);
}

template <class T>
Status convert(const float* x, T* rounded, float* back, int n) {
  return launch({.grid = 4, .block = 64}, convert_kernel<T>, x, rounded, back, n);
}
template Status convert(const float*, bf16*, float*, int);
template Status convert(const float*, f16*, float*, int);
template Status convert(const float*, float*, float*, int);

Status math_functions(const float* x, float* y, int n) {
  return launch({.grid = blocks_of(n), .block = 64}, math_kernel, x, y, n);
}

template <class T>
Status copy_elements(const T* in, T* out, int n) {
  return launch({.grid = blocks_of(n), .block = 64}, copy_elements_kernel<T>, in, out, n);
}
template Status copy_elements(const double*, double*, int);
template Status copy_elements(const float*, float*, int);
template Status copy_elements(const bf16*, bf16*, int);
template Status copy_elements(const f16*, f16*, int);
template Status copy_elements(const int64_t*, int64_t*, int);
template Status copy_elements(const int32_t*, int32_t*, int);
template Status copy_elements(const uint8_t*, uint8_t*, int);

}  // namespace tigon::device_tests
