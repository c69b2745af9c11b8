// SPDX-License-Identifier: Apache-2.0
// Kernels of faults.h. A comment "finds: fault" marks the lines at which the checker reports a
// fault: the test reads them from this file.
#include "kernels/simt/tests/faults.h"

#include "kernels/device/device.h"

namespace tigon::simt_tests {

namespace {

constexpr unsigned kAll = 0xffffffffu;

// ---------------------------------------------------------------- reductions

template <Fault kFault>
TIGON_DEVICE float warp_total(float v) {
  if constexpr (kFault == Fault::kHalfWarpMask) {
    for (int step = 16; step > 0; step /= 2)
      v += __shfl_xor_sync(0x0000ffffu, v, step);  // finds: kHalfWarpMask
    return v;
  } else {
    return warp_sum(v);
  }
}

template <int kThreads, Fault kFault>
TIGON_DEVICE float block_total(float v) {
  constexpr int kWarps = kThreads / 32;
  constexpr int kLength = kFault == Fault::kSharedTooShort ? kWarps - 1 : kWarps;
  TIGON_SHARED(float, partial, [kLength]);
  TIGON_SHARED(float, padded, [32]);
  v = warp_total<kFault>(v);
  if constexpr (kFault != Fault::kNoBarrierBeforeReuse) __syncthreads();
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = v;  // finds: kNoBarrierBeforeReuse, kSharedTooShort
  if constexpr (kFault != Fault::kNoBarrierAfterPartial) __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  if constexpr (kFault == Fault::kShuffleInBranch) {
    float s = 0.0f;
    if (lane < kWarps) {
      s = partial[lane];
      for (int step = kWarps / 2; step > 0; step /= 2)
        s += __shfl_xor_sync(kAll, s, step);  // finds: kShuffleInBranch
    }
    return __shfl_sync(kAll, s, 0);  // finds: kShuffleInBranch
  } else if constexpr (kFault == Fault::kPartialsNotWritten) {
    if (threadIdx.x < kWarps) padded[threadIdx.x] = partial[threadIdx.x];
    __syncthreads();
    return warp_sum(padded[lane]);  // finds: kPartialsNotWritten
  } else {
    (void)padded;
    return warp_sum(lane < kWarps ? partial[lane] : 0.0f);  // finds: kNoBarrierAfterPartial
  }
}

template <Fault kFault>
TIGON_KERNEL(256)
block_sums_kernel(const float* x, float* sums, int rows) {
  for (int row = 0; row < rows; ++row) {
    const float s = block_total<256, kFault>(x[row * 256 + static_cast<int>(threadIdx.x)]);
    if (threadIdx.x == 0) sums[row] = s;
  }
}

// ---------------------------------------------------------------- RMS norm: a block per row

template <Fault kFault>
TIGON_KERNEL(128)
rms_norm_kernel(const bf16* x, const bf16* w, bf16* y, float* rstd, int h) {
  constexpr int kV = kVec<bf16>;
  const bf16* row = x + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(h);
  bf16* out = y + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(h);
  const int thread = static_cast<int>(threadIdx.x);
  int vectors = h % kV == 0 ? h / kV : 0;
  if constexpr (kFault == Fault::kRowsNotAligned) vectors = h / kV;
  if constexpr (kFault == Fault::kVectorsRoundedUp) vectors = (h + kV - 1) / kV;
  float sum = 0.0f;
  float f[kV], g[kV];
  for (int i = thread; i < vectors; i += 128) {
    unpack(load16(row + i * kV), f);  // finds: kRowsNotAligned, kVectorsRoundedUp
    for (int j = 0; j < kV; ++j) sum += f[j] * f[j];
  }
  for (int i = vectors * kV + thread; i < h; i += 128) sum += to_float(row[i]) * to_float(row[i]);
  if (kFault == Fault::kEarlyReturn && thread >= h / kV) return;
  sum = block_sum<128>(sum);  // finds: kEarlyReturn
  const float r = fast_rsqrt(sum / static_cast<float>(h) + 1e-5f);
  if (thread == 0) rstd[blockIdx.x] = r;
  for (int i = thread; i < vectors; i += 128) {
    unpack(load16(row + i * kV), f);
    unpack(load16(w + i * kV), g);  // finds: kVectorsRoundedUp
    for (int j = 0; j < kV; ++j) f[j] *= r * g[j];
    store16(out + i * kV, pack<bf16>(f));
  }
  for (int i = vectors * kV + thread; i < h; i += 128)
    out[i] = bf16(to_float(row[i]) * r * to_float(w[i]));
}

// ---------------------------------------------------------------- column sums: 4 blocks

template <Fault kFault>
TIGON_KERNEL(64)
partial_sums_kernel(const float* x, float* partial, int rows, int h) {
  const int block = static_cast<int>(blockIdx.x);
  float* out = partial + (kFault == Fault::kSamePartialRow ? 0 : block * h);
  for (int c = static_cast<int>(threadIdx.x); c < h; c += 64) {
    float sum = 0.0f;
    for (int r = block; r < rows; r += 4) sum += x[r * h + c];
    out[c] = sum;  // finds: kSamePartialRow
  }
}
TIGON_KERNEL(64) total_kernel(const float* partial, float* sums, int h) {
  const int c = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  if (c >= h) return;
  sums[c] = partial[c] + partial[h + c] + partial[2 * h + c] + partial[3 * h + c];
}

// ---------------------------------------------------------------- cross entropy, in place

struct MaxSum {
  float maximum, sum;
};
struct Join {
  TIGON_DEVICE MaxSum operator()(MaxSum a, MaxSum b) const {
    const float m = Max{}(a.maximum, b.maximum);
    const float sa = a.maximum == -INFINITY ? 0.0f : a.sum * fast_exp(a.maximum - m);
    const float sb = b.maximum == -INFINITY ? 0.0f : b.sum * fast_exp(b.maximum - m);
    return {m, sa + sb};
  }
};

template <Fault kFault, bool kClustered>
TIGON_KERNEL(128)
cross_entropy_kernel(bf16* logits, const int* target, float* loss, int vocab) {
  constexpr int kV = kVec<bf16>;
  const unsigned blocks = kClustered ? cluster_size() : 1;
  const unsigned rank = kClustered ? cluster_rank() : 0;
  const unsigned row = blockIdx.x / blocks;
  const int thread = static_cast<int>(threadIdx.x);
  bf16* x = logits + static_cast<size_t>(row) * static_cast<size_t>(vocab);
  const int label = target[row];
  // Elements before the first and behind the last aligned vector are the first block's.
  const auto misaligned = static_cast<int>(reinterpret_cast<uintptr_t>(x) % 16);
  int head = (16 - misaligned) % 16 / static_cast<int>(sizeof(bf16));
  if constexpr (kFault == Fault::kBaseNotAligned) head = 0;
  const int vectors = (vocab - head) / kV, tail = head + vectors * kV;
  const int share = ceil_div(vectors, static_cast<int>(blocks));
  const int begin = static_cast<int>(rank) * share, end = min(vectors, begin + share);
  const float label_logit = to_float(x[label]);

  MaxSum s{-INFINITY, 0.0f};
  float f[kV];
  for (int i = begin + thread; i < end; i += 128) {
    unpack(load16(x + head + i * kV), f);  // finds: kBaseNotAligned
    for (int j = 0; j < kV; ++j) s = Join{}(s, MaxSum{f[j], 1.0f});
  }
  if (rank == 0) {
    for (int i = thread; i < head; i += 128) s = Join{}(s, MaxSum{to_float(x[i]), 1.0f});
    for (int i = tail + thread; i < vocab; i += 128) s = Join{}(s, MaxSum{to_float(x[i]), 1.0f});
  }
  s = block_reduce<128>(s, Join{});
  if constexpr (kClustered) {
    TIGON_SHARED(MaxSum, own, [1]);
    if (thread == 0) own[0] = s;  // finds: kNoClusterBarrier
    if (kFault == Fault::kClusterStart && rank == 0 && thread == 0)
      cluster_map(&own[0], 1)->sum = 0.0f;  // finds: kClusterStart
    if constexpr (kFault != Fault::kNoClusterBarrier) cluster_sync();
    s = MaxSum{-INFINITY, 0.0f};
    for (unsigned r = 0; r < blocks; ++r) {
      const MaxSum* peer = cluster_map(&own[0], r);
      const float maximum = peer->maximum;  // finds: kNoClusterBarrier, kClusterExit
      const float sum = peer->sum;          // finds: kNoClusterBarrier, kClusterExit
      s = Join{}(s, MaxSum{maximum, sum});
    }
    if constexpr (kFault != Fault::kClusterExit) cluster_sync();
  }
  const float log_sum = s.maximum + fast_log(s.sum);
  if (kFault != Fault::kLabelOverwritten && rank == 0 && thread == 0)
    loss[row] = log_sum - label_logit;
  const auto gradient = [&](float logit, int c) {
    return fast_exp(logit - log_sum) - (c == label ? 1.0f : 0.0f);
  };
  for (int i = begin + thread; i < end; i += 128) {
    unpack(load16(x + head + i * kV), f);
    for (int j = 0; j < kV; ++j) f[j] = gradient(f[j], head + i * kV + j);
    store16(x + head + i * kV, pack<bf16>(f));  // finds: kLabelOverwritten
  }
  if (rank == 0) {
    for (int i = thread; i < head; i += 128) x[i] = bf16(gradient(to_float(x[i]), i));
    for (int i = tail + thread; i < vocab; i += 128) x[i] = bf16(gradient(to_float(x[i]), i));
  }
  if (kFault == Fault::kLabelOverwritten && rank == 0 && thread == 127)
    loss[row] = log_sum - to_float(x[label]);  // finds: kLabelOverwritten
}

// ---------------------------------------------------------------- SwiGLU

template <Fault kFault>
TIGON_KERNEL(64)
swiglu_kernel(const bf16* a, const bf16* b, bf16* y, int n) {
  const int end = kFault == Fault::kTailOneMore ? n + 1 : n;
  for (int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x); i < end;
       i += static_cast<int>(gridDim.x) * 64) {
    const float v = to_float(a[i]);  // finds: kTailOneMore
    y[i] = bf16(v * sigmoid(v) * to_float(b[i]));
  }
}

template <Fault kFault>
TIGON_KERNEL(64)
swiglu_backward_kernel(const bf16* dy, bf16* a, bf16* b, int n) {
  for (int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x) * 64) {
    float v = to_float(a[i]);
    const float gate = sigmoid(v), up = to_float(b[i]), d = to_float(dy[i]);
    a[i] = bf16(d * up * gate * (1.0f + v * (1.0f - gate)));
    if constexpr (kFault == Fault::kInPlaceOrder) v = to_float(a[i]);
    b[i] = bf16(d * v * gate);
  }
}

// ---------------------------------------------------------------- exchange

template <Fault kFault>
TIGON_KERNEL(64)
rotate_kernel(const int* in, int* out) {
  TIGON_SHARED(int, values, [64]);
  const unsigned i = threadIdx.x;
  values[i] = in[i];  // finds: kNoSyncwarp
  if constexpr (kFault != Fault::kNoSyncwarp) __syncwarp();
  out[i] = values[i / 32 * 32 + (i + 1) % 32];  // finds: kNoSyncwarp
}

// ---------------------------------------------------------------- bulk copies: two stages

template <Fault kFault>
TIGON_KERNEL(128)
pipeline_kernel(const float* x, float* sums, int tiles) {
  constexpr int kTile = 1024, kStages = 2;
  constexpr unsigned kBytes = kTile * sizeof(float);
  TIGON_SHARED(float4, stage, [kStages * kTile / 4]);
  TIGON_SHARED(Mbarrier, full, [kStages]);
  TIGON_SHARED(Mbarrier, empty, [kStages]);
  float* buffer = reinterpret_cast<float*>(&stage[0]);
  const float* row = x + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(tiles) * kTile;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(&full[s], 1);     // finds: kNoInitBarrier
      mbarrier_init(&empty[s], 128);  // finds: kNoInitBarrier
    }
    if constexpr (kFault != Fault::kNoInitFence) mbarrier_fence_init();
  }
  if constexpr (kFault != Fault::kNoInitBarrier) __syncthreads();
  const auto produce = [&](int k) {
    const int s = k % kStages;
    const float* from = row + static_cast<size_t>(k) * kTile;
    float* to = buffer + s * kTile;
    mbarrier_arrive_expect(&full[s], kBytes - (kFault == Fault::kWrongByteCount ? 16 : 0));
    bulk_copy(to, from, kBytes, &full[s]);  // finds: kWrongByteCount, kNoFence, kNoInitFence
  };
  if (threadIdx.x == 0)
    for (int k = 0; k < kStages && k < tiles; ++k) produce(k);
  float sum = 0.0f;
  for (int k = 0; k < tiles; ++k) {
    const int s = k % kStages;
    const auto phase = static_cast<unsigned>(k / kStages) & 1u;
    if constexpr (kFault != Fault::kNoWaitForCopy)
      mbarrier_wait(&full[s], phase);  // finds: kNoInitBarrier
    for (int i = static_cast<int>(threadIdx.x); i < kTile; i += 128)
      sum += buffer[s * kTile + i];  // finds: kNoWaitForCopy, kRefillTooEarly
    if constexpr (kFault != Fault::kNoFence) bulk_fence();
    mbarrier_arrive(&empty[s]);
    if (threadIdx.x == 0 && k + kStages < tiles) {
      if constexpr (kFault != Fault::kRefillTooEarly) mbarrier_wait(&empty[s], phase);
      produce(k + kStages);
    }
  }
  sum = block_sum<128>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// ---------------------------------------------------------------- others

template <Fault kFault>
TIGON_KERNEL(64)
other_kernel(float* x) {  // finds: kStackOverflow
  const unsigned i = threadIdx.x;
  TIGON_SHARED(float4, tile, [64]);
  float* values = reinterpret_cast<float*>(&tile[0]);
  values[i] = 1.0f;
  if constexpr (kFault == Fault::kDeadlock) {
    if (i == 5)
      __syncwarp();  // finds: kDeadlock
    else
      __syncthreads();
  }
  if constexpr (kFault == Fault::kTrap) __trap();
  if constexpr (kFault == Fault::kReturnBeforeBarrier) {
    if (i >= 32) return;
    __syncthreads();  // finds: kReturnBeforeBarrier
    x[i] = 2.0f;
  }
  if constexpr (kFault == Fault::kWaitTooWeak) {
    async_copy<4>(values + i, x + i);
    async_commit();
    async_wait<1>();
    x[i] = values[i];  // finds: kWaitTooWeak
    async_wait<0>();
  }
  if constexpr (kFault == Fault::kTwoBarriers) {
    if (i < 32)
      __syncthreads();  // finds: kTwoBarriers
    else
      __syncthreads();  // finds: kTwoBarriers
  }
  if constexpr (kFault == Fault::kByteRace)
    reinterpret_cast<uint8_t*>(x)[i / 2] = static_cast<uint8_t>(i);  // finds: kByteRace
  if constexpr (kFault == Fault::kCopyLeftInFlight) {
    async_copy<4>(values + i, x + i);  // finds: kCopyLeftInFlight
    async_commit();
  }
  if constexpr (kFault == Fault::kBulkCopyMisaligned) {
    TIGON_SHARED(Mbarrier, full, [1]);
    if (i == 0) {
      mbarrier_init(&full[0], 1);
      mbarrier_fence_init();
      mbarrier_arrive_expect(&full[0], 16);
      bulk_copy(values, x + 1, 16, &full[0]);  // finds: kBulkCopyMisaligned
      mbarrier_wait(&full[0], 0);
    }
  }
  if constexpr (kFault == Fault::kPrefetchMisaligned)
    prefetch_bulk(x + 1, 16);  // finds: kPrefetchMisaligned
  if constexpr (kFault == Fault::kPrefetchOutOfBounds)
    prefetch_bulk(x, blockDim.x * sizeof(float) + 16);  // finds: kPrefetchOutOfBounds
  if constexpr (kFault == Fault::kNullPointer) {
    const float* nothing = x != nullptr ? nullptr : x;
    x[i] = *static_cast<const volatile float*>(nothing);  // finds: kNullPointer
  }
  if constexpr (kFault == Fault::kStackOverflow) {
    volatile float large[20000];
    for (unsigned k = 0; k < 20000; ++k) large[k] = static_cast<float>(k);
    x[i] = large[i];
  }
  if constexpr (kFault == Fault::kNone) x[i] = values[i];
}

}  // namespace

Status block_sums(Fault fault, const float* x, float* sums, int rows) {
  const auto run = [&](void (*kernel)(const float*, float*, int)) {
    return launch({.grid = 1, .block = 256}, kernel, x, sums, rows);
  };
  switch (fault) {
    case Fault::kNoBarrierBeforeReuse:
      return run(block_sums_kernel<Fault::kNoBarrierBeforeReuse>);
    case Fault::kNoBarrierAfterPartial:
      return run(block_sums_kernel<Fault::kNoBarrierAfterPartial>);
    case Fault::kShuffleInBranch:
      return run(block_sums_kernel<Fault::kShuffleInBranch>);
    case Fault::kPartialsNotWritten:
      return run(block_sums_kernel<Fault::kPartialsNotWritten>);
    case Fault::kHalfWarpMask:
      return run(block_sums_kernel<Fault::kHalfWarpMask>);
    case Fault::kSharedTooShort:
      return run(block_sums_kernel<Fault::kSharedTooShort>);
    default:
      return run(block_sums_kernel<Fault::kNone>);
  }
}

Status rms_norm(Fault fault, const bf16* x, const bf16* w, bf16* y, float* rstd, int rows, int h) {
  const auto run = [&](void (*kernel)(const bf16*, const bf16*, bf16*, float*, int)) {
    return launch({.grid = static_cast<unsigned>(rows), .block = 128}, kernel, x, w, y, rstd, h);
  };
  switch (fault) {
    case Fault::kRowsNotAligned:
      return run(rms_norm_kernel<Fault::kRowsNotAligned>);
    case Fault::kVectorsRoundedUp:
      return run(rms_norm_kernel<Fault::kVectorsRoundedUp>);
    case Fault::kEarlyReturn:
      return run(rms_norm_kernel<Fault::kEarlyReturn>);
    default:
      return run(rms_norm_kernel<Fault::kNone>);
  }
}

Status column_sums(Fault fault, const float* x, float* partial, float* sums, int rows, int h) {
  const auto kernel = fault == Fault::kSamePartialRow ? partial_sums_kernel<Fault::kSamePartialRow>
                                                      : partial_sums_kernel<Fault::kNone>;
  const Status status = launch({.grid = 4, .block = 64}, kernel, x, partial, rows, h);
  if (!status.ok()) return status;
  return launch({.grid = static_cast<unsigned>(ceil_div(h, 64)), .block = 64}, total_kernel,
                partial, sums, h);
}

Status cross_entropy(Fault fault, bf16* logits, const int* target, float* loss, int rows, int vocab,
                     unsigned cluster) {
  const auto run = [&](void (*kernel)(bf16*, const int*, float*, int)) {
    return launch({.grid = static_cast<unsigned>(rows) * cluster, .block = 128, .cluster = cluster},
                  kernel, logits, target, loss, vocab);
  };
  switch (fault) {
    case Fault::kBaseNotAligned:
      return run(cross_entropy_kernel<Fault::kBaseNotAligned, false>);
    case Fault::kLabelOverwritten:
      return run(cross_entropy_kernel<Fault::kLabelOverwritten, false>);
    case Fault::kClusterStart:
      return run(cross_entropy_kernel<Fault::kClusterStart, true>);
    case Fault::kClusterExit:
      return run(cross_entropy_kernel<Fault::kClusterExit, true>);
    case Fault::kNoClusterBarrier:
      return run(cross_entropy_kernel<Fault::kNoClusterBarrier, true>);
    default:
      return run(cluster > 1 ? cross_entropy_kernel<Fault::kNone, true>
                             : cross_entropy_kernel<Fault::kNone, false>);
  }
}

Status swiglu(Fault fault, const bf16* a, const bf16* b, bf16* y, int n) {
  const auto kernel = fault == Fault::kTailOneMore ? swiglu_kernel<Fault::kTailOneMore>
                                                   : swiglu_kernel<Fault::kNone>;
  return launch({.grid = 3, .block = 64}, kernel, a, b, y, n);
}

Status swiglu_backward(Fault fault, const bf16* dy, bf16* a, bf16* b, int n) {
  const auto kernel = fault == Fault::kInPlaceOrder ? swiglu_backward_kernel<Fault::kInPlaceOrder>
                                                    : swiglu_backward_kernel<Fault::kNone>;
  return launch({.grid = 3, .block = 64}, kernel, dy, a, b, n);
}

Status rotate(Fault fault, const int* in, int* out) {
  const auto kernel =
      fault == Fault::kNoSyncwarp ? rotate_kernel<Fault::kNoSyncwarp> : rotate_kernel<Fault::kNone>;
  return launch({.grid = 1, .block = 64}, kernel, in, out);
}

Status pipeline(Fault fault, const float* x, float* sums, int rows, int tiles) {
  const auto run = [&](void (*kernel)(const float*, float*, int)) {
    return launch({.grid = static_cast<unsigned>(rows), .block = 128}, kernel, x, sums, tiles);
  };
  switch (fault) {
    case Fault::kNoWaitForCopy:
      return run(pipeline_kernel<Fault::kNoWaitForCopy>);
    case Fault::kRefillTooEarly:
      return run(pipeline_kernel<Fault::kRefillTooEarly>);
    case Fault::kWrongByteCount:
      return run(pipeline_kernel<Fault::kWrongByteCount>);
    case Fault::kNoFence:
      return run(pipeline_kernel<Fault::kNoFence>);
    case Fault::kNoInitFence:
      return run(pipeline_kernel<Fault::kNoInitFence>);
    case Fault::kNoInitBarrier:
      return run(pipeline_kernel<Fault::kNoInitBarrier>);
    default:
      return run(pipeline_kernel<Fault::kNone>);
  }
}

Status other(Fault fault, float* x) {
  const auto run = [&](void (*kernel)(float*)) {
    return launch({.grid = 1, .block = 64}, kernel, x);
  };
  switch (fault) {
    case Fault::kDeadlock:
      return run(other_kernel<Fault::kDeadlock>);
    case Fault::kReturnBeforeBarrier:
      return run(other_kernel<Fault::kReturnBeforeBarrier>);
    case Fault::kWaitTooWeak:
      return run(other_kernel<Fault::kWaitTooWeak>);
    case Fault::kTrap:
      return run(other_kernel<Fault::kTrap>);
    case Fault::kTwoBarriers:
      return run(other_kernel<Fault::kTwoBarriers>);
    case Fault::kByteRace:
      return run(other_kernel<Fault::kByteRace>);
    case Fault::kCopyLeftInFlight:
      return run(other_kernel<Fault::kCopyLeftInFlight>);
    case Fault::kBulkCopyMisaligned:
      return run(other_kernel<Fault::kBulkCopyMisaligned>);
    case Fault::kPrefetchMisaligned:
      return run(other_kernel<Fault::kPrefetchMisaligned>);
    case Fault::kPrefetchOutOfBounds:
      return run(other_kernel<Fault::kPrefetchOutOfBounds>);
    case Fault::kNullPointer:
      return run(other_kernel<Fault::kNullPointer>);
    case Fault::kStackOverflow:
      return run(other_kernel<Fault::kStackOverflow>);
    default:
      return run(other_kernel<Fault::kNone>);
  }
}

}  // namespace tigon::simt_tests
