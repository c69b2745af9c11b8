// Cross entropy of rows of logits. With x a row (after the softcap c tanh(x / c)) and y its target:
//   lse = log sum_i exp(x_i)
//   loss = (1 - a) (lse - x_y) + a (lse - mean(x)) + z lse^2
//   dloss/dx_i = ((1 + 2 z lse) p_i - a / V - (1 - a) [i = y]) (1 - tanh^2),  p_i = exp(x_i - lse)
// A block or a cluster of blocks works on one row: each logit is read once from memory, kept in
// shared memory as far as that reaches (the rest is read again, from L2 while it holds 2 rows per
// SM), and its gradient is written once over it. Statistics are fp32 and online.
#include "kernels/device/loss_rows.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "kernels/device/device.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/exp_sum.h"
#include "kernels/device/row_slice.h"

namespace tigon {
namespace {

constexpr int kSmallThreads = 128;  // for rows of up to kSmallRow bytes
constexpr size_t kSmallRow = 16384;
constexpr int kLargeThreads = 512;  // 512 leave 40 registers for three blocks, which spill
constexpr int kLargeBlocks = 3;     // per multiprocessor: one loads while others reduce and store
constexpr size_t kStaticShared = 512;   // upper bound of a block's shared memory beside the row
constexpr size_t kSystemShared = 1024;  // that CUDA takes for itself per block
// 16-byte loads in flight per thread; 4 of them spill 4 bytes on sm_80 (nvcc 13.0).
constexpr int kBatch = 3;
constexpr int kReduceThreads = 1024;

// Sums over some columns: of exponentials, and of the logits themselves.
struct Statistics {
  ExpSum exp;
  float sum = 0.0f;
};

template <int kCount>
TIGON_DEVICE void add(Statistics& s, const float (&x)[kCount]) {
  add(s.exp, x);
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) s.sum += x[j];
}

struct Join {
  TIGON_DEVICE Statistics operator()(const Statistics& a, const Statistics& b) const {
    return {JoinExpSums{}(a.exp, b.exp), a.sum + b.sum};
  }
};

// The statistics of all blocks of the cluster, joined in the same order in each of them.
TIGON_DEVICE Statistics join_cluster(const Statistics& block) {
  TIGON_SHARED(Statistics, mine, [1]);
  if (threadIdx.x == 0) mine[0] = block;
  if (!planted("loss.no_cluster_sync_before")) cluster_sync();
  Statistics all = *cluster_map(&mine[0], 0);
  for (unsigned rank = 1; rank < cluster_size(); ++rank)
    all = Join{}(all, *cluster_map(&mine[0], rank));
  // Nobody leaves while others read its shared memory.
  if (!planted("loss.cluster_leaves_early")) cluster_sync();
  return all;
}

template <bool kSoftcap>
struct Softcap {
  float cap, inverse;
  TIGON_DEVICE float operator()(float x) const {
    return kSoftcap ? cap * fast_tanh(x * inverse) : x;
  }
};

// Gradient of a column with logit x; `at_target` is taken off before the softcap's derivative.
template <bool kSoftcap>
struct Gradient {
  Softcap<kSoftcap> softcap;
  float lse, scale, offset;
  TIGON_DEVICE float operator()(float x, float at_target) const {
    if (planted("loss.other_gradients_zero") && at_target == 0.0f) return 0.0f;
    if constexpr (!kSoftcap) return scale * fast_exp_flushed(x - lse) - offset - at_target;
    const float t = fast_tanh(x * softcap.inverse);
    const float slope = planted("loss.softcap_slope_missing") ? 1.0f : 1.0f - t * t;
    return (scale * fast_exp_flushed(softcap.cap * t - lse) - offset - at_target) * slope;
  }
};

template <class T, int kThreads>
TIGON_DEVICE void fill_zero(T* x, const Slice& s, int columns, unsigned rank) {
  constexpr int kWidth = kVec<T>;
  float zeros[kWidth] = {};
  for (int i = s.first + static_cast<int>(threadIdx.x); i < s.last; i += kThreads)
    store16(x + s.head + i * kWidth, pack<T>(zeros));
  for_each_end<kThreads>(s, columns, rank, threadIdx.x,
                         [&](int c) { store(x + c, from_float<T>(0.0f)); });
}

// First sweep: the row's statistics; the first `kept` vectors of the slice stay in shared memory.
template <int kThreads, bool kSoftcap, class T>
TIGON_DEVICE Statistics read_row(const T* x, const Slice& s, int columns, unsigned rank,
                                 Vec<T>* keep, int kept, const Softcap<kSoftcap>& softcap) {
  constexpr int kWidth = kVec<T>;
  Statistics statistics;
  for (int i = s.first + static_cast<int>(threadIdx.x); i < s.last; i += kBatch * kThreads) {
    const T* const from = x + s.head + i * kWidth;
    Vec<T>* const to = keep + (i - s.first);
    Vec<T> batch[kBatch];
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (i + b * kThreads < s.last) batch[b] = load16(from + b * kThreads * kWidth);
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (i + b * kThreads >= s.last) break;
      if (i + b * kThreads - s.first < kept) to[b * kThreads] = batch[b];
      float f[kWidth];
      unpack(batch[b], f);
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) f[j] = softcap(f[j]);
      add(statistics, f);
    }
  }
  for_each_end<kThreads>(s, columns, rank, threadIdx.x, [&](int c) {
    const float f[1] = {softcap(to_float(load(x + c)))};
    add(statistics, f);
  });
  return statistics;
}

// The target's gradient when p is stored before `at_target` is taken off: a planted fault.
template <class T>
TIGON_DEVICE float after_rounding(float gradient, float at_target) {
  return to_float(from_float<T>(gradient + at_target)) - at_target;
}

// Second sweep: the gradient over the logits. y is the target's column. One loop for the vectors in
// shared memory and one for those that are read again: a choice in the loop costs 15 instructions.
template <int kThreads, bool kSoftcap, class T>
TIGON_DEVICE void write_gradient(T* x, const Slice& s, int columns, unsigned rank,
                                 const Vec<T>* keep, int kept, const Gradient<kSoftcap>& gradient,
                                 int y, float at_target) {
  constexpr int kWidth = kVec<T>;
  const auto write = [&](int i, const Vec<T>& logits) {
    const int column = s.head + i * kWidth;
    float f[kWidth];
    unpack(logits, f);
    if (y < column || y >= column + kWidth) {
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) f[j] = gradient(f[j], 0.0f);
    } else {
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        f[j] = gradient(f[j], column + j == y ? at_target : 0.0f);
        if (planted("loss.target_gradient_rounded") && column + j == y)
          f[j] = after_rounding<T>(f[j], at_target);
      }
    }
    store16(x + column, pack<T>(f));
  };
  const int end_of_kept = min(s.last, s.first + kept);
  int i = s.first + static_cast<int>(threadIdx.x);
  for (; i < end_of_kept; i += kThreads) write(i, keep[i - s.first]);
  for (; i < s.last; i += kThreads) write(i, load16(x + s.head + i * kWidth));
  for_each_end<kThreads>(s, columns, rank, threadIdx.x, [&](int c) {
    float f = gradient(to_float(load(x + c)), c == y ? at_target : 0.0f);
    if (planted("loss.target_gradient_rounded") && c == y) f = after_rounding<T>(f, at_target);
    store(x + c, from_float<T>(f));
  });
}

template <class T>
TIGON_DEVICE float upstream(const LossRows<T>& a, int64_t row) {
  float g = 1.0f;
  const bool per_row =
      a.options.reduction == Reduction::kNone && !planted("loss.dloss_of_first_row");
  if (a.dloss != nullptr && !planted("loss.dloss_ignored")) g = load(a.dloss + (per_row ? row : 0));
  if (a.options.reduction == Reduction::kMean) g /= static_cast<float>(load(a.counted));
  return g;
}

template <class T>
TIGON_DEVICE float row_loss(const LossRows<T>& a, const Statistics& s, float lse, float target) {
  const float smoothing = a.options.label_smoothing;
  float loss = (1.0f - smoothing) * (lse - target) + a.options.z_loss * lse * lse;
  // Only then, because the mean of a row with a logit of -inf is -inf.
  const float sum = planted("loss.smoothing_sum_missing") ? 0.0f : s.sum;
  if (smoothing != 0.0f) loss += smoothing * (lse - sum / static_cast<float>(a.columns));
  return loss;
}

template <class T, int kThreads, int kBlocks, bool kSoftcap>
TIGON_KERNEL(kThreads, kBlocks - (kSoftcap && kBlocks > 1))
loss_rows_kernel(LossRows<T> a, int kept) {
  TIGON_DYNAMIC_SHARED(Vec<T>, keep);
  const unsigned blocks = cluster_size(), rank = cluster_rank();
  const int64_t row = blockIdx.x / blocks;
  const int columns = static_cast<int>(a.columns);
  int64_t offset = row * (planted("loss.stride_ignored") ? a.columns : a.stride);
  if (planted("loss.offset_in_int32")) offset = static_cast<int32_t>(offset);
  T* const x = a.logits + offset;
  const Slice slice = slice_of<kVec<T>>(x, columns, rank, blocks);
  const bool writes_row = rank == 0 && threadIdx.x == 0;
  const bool forward = a.pass != LossPass::kBackward, backward = a.pass != LossPass::kForward;
  int64_t target = load(a.target + row);
  if (target == a.options.ignore_index && !planted("loss.ignore_index_unused")) {
    if (backward && !planted("loss.ignored_gradient_kept"))
      fill_zero<T, kThreads>(x, slice, columns, rank);
    if (forward && writes_row) {
      store(a.loss + row, 0.0f);
      store(a.lse + row, 0.0f);
    }
    return;
  }
  if (planted("loss.target_off_by_one") && target + 1 < a.columns) ++target;
  const bool valid = target >= 0 && target < a.columns;
  const Softcap<kSoftcap> softcap = {a.options.softcap, 1.0f / a.options.softcap};
  float lse;
  if (forward) {
    // Read before the first barrier: after it, the gradient takes the logit's place.
    float x_y = writes_row && valid ? softcap(to_float(load(x + target))) : NAN;
    if (planted("loss.target_without_softcap") && writes_row && valid)
      x_y = to_float(load(x + target));
    Statistics s = read_row<kThreads>(x, slice, columns, rank, keep, kept, softcap);
    s = block_reduce<kThreads>(s, Join{});
    if (planted("loss.target_read_late") && writes_row && valid)
      x_y = softcap(to_float(load(x + target)));
    if (blocks > 1 && !planted("loss.cluster_not_joined")) s = join_cluster(s);
    lse = s.exp.max + logf(s.exp.sum);
    if (writes_row) {
      store(a.lse + row, lse);
      store(a.loss + row, row_loss(a, s, lse, x_y));
    }
  } else {
    lse = load(a.lse + row);
  }
  if (!backward) return;
  float g = valid ? upstream(a, row) : NAN;  // an invalid target makes the row NaN
  if (planted("loss.invalid_target_ignored") && !valid) g = 0.0f;
  const float z_loss = planted("loss.z_loss_slope_missing") ? 0.0f : a.options.z_loss;
  const float smoothing = a.options.label_smoothing;
  const Gradient<kSoftcap> gradient = {
      softcap, lse, g * (1.0f + 2.0f * z_loss * lse),
      g * (planted("loss.smoothing_slope_missing") ? 0.0f
                                                   : smoothing / static_cast<float>(columns))};
  write_gradient<kThreads>(x, slice, columns, rank, keep, forward ? kept : 0, gradient,
                           valid ? static_cast<int>(target) : -1,
                           g * (planted("loss.smoothing_keeps_target") ? 1.0f : 1.0f - smoothing));
  if (planted("loss.row_overrun") && writes_row) store(x + columns, from_float<T>(0.0f));
}

TIGON_KERNEL(kReduceThreads)
count_rows_kernel(const int64_t* target, int64_t rows, int64_t ignore_index, int64_t* counted) {
  int64_t n = 0;
  for (int64_t i = threadIdx.x; i < rows; i += kReduceThreads)
    n += load(target + i) != ignore_index || planted("loss.ignored_counted") ? 1 : 0;
  n = block_reduce<kReduceThreads>(n, Sum{});
  if (threadIdx.x == 0) store(counted, n);
}

TIGON_KERNEL(kReduceThreads)
reduce_loss_kernel(const float* row_loss, int64_t rows, const int64_t* counted, float* loss) {
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < rows; i += kReduceThreads) sum += load(row_loss + i);
  sum = block_sum<kReduceThreads>(sum);
  if (threadIdx.x != 0) return;
  const int64_t n = counted != nullptr && !planted("loss.sum_for_mean") ? load(counted) : 1;
  store(loss, n != 0 ? sum / static_cast<float>(n) : 0.0f);
}

// Blocks per row and the bytes of a block's slice that it keeps in shared memory.
struct Placement {
  unsigned cluster = 1;
  size_t kept = 0;
};

Placement place_row(size_t row_bytes) {
  if (row_bytes <= kSmallRow) return {1, row_bytes};
  const DeviceLimits limits = device_limits();
  const auto room = [&](size_t blocks) {
    return std::min(limits.shared_per_block - kStaticShared,
                    limits.shared_per_multiprocessor / blocks - kSystemShared - kStaticShared);
  };
  Placement p;
  while (limits.clusters && p.cluster < kMaxCluster && row_bytes > p.cluster * room(kLargeBlocks))
    p.cluster *= 2;
  const size_t slice = row_bytes / p.cluster + 16;
  p.kept = std::min(slice, slice <= room(kLargeBlocks) ? slice : room(2));
  return p;
}

template <int kThreads, int kBlocks, class Elem>
Status launch_rows(const LossRows<Elem>& a, const Placement& p, Stream stream) {
  const int64_t blocks = a.rows * p.cluster;
  if (blocks > INT_MAX) return unsupported("loss: rows times blocks per row must be below 2^31");
  const int kept = static_cast<int>(p.kept / sizeof(Vec<Elem>));
  const LaunchConfig config{
      .grid = dim3(static_cast<unsigned>(blocks)),
      .block = dim3(kThreads),
      .shared_bytes = (static_cast<size_t>(kept) - (planted("loss.shared_too_small") && kept > 0)) *
                      sizeof(Vec<Elem>),
      .stream = stream,
      .cluster = p.cluster};
  if (a.options.softcap > 0.0f)
    return launch(config, loss_rows_kernel<Elem, kThreads, kBlocks, true>, a, kept);
  return launch(config, loss_rows_kernel<Elem, kThreads, kBlocks, false>, a, kept);
}

}  // namespace

template <class Elem>
Status loss_rows(const LossRows<Elem>& a, Stream stream) {
  if (a.columns > INT_MAX) return unsupported("loss: the vocabulary must be below 2^31");
  const size_t row_bytes = static_cast<size_t>(a.columns) * sizeof(Elem);
  Placement p = place_row(row_bytes);
  if (a.pass != LossPass::kForwardBackward) p = {};  // one sweep: nothing to keep
  if (row_bytes <= kSmallRow) return launch_rows<kSmallThreads, 1>(a, p, stream);
  return launch_rows<kLargeThreads, kLargeBlocks>(a, p, stream);
}

Status count_rows(const int64_t* target, int64_t rows, int64_t ignore_index, int64_t* counted,
                  Stream stream) {
  if (planted("loss.count_skipped")) return {};
  return launch({.grid = dim3(1), .block = dim3(kReduceThreads), .stream = stream},
                count_rows_kernel, target, rows, ignore_index, counted);
}

Status reduce_loss(const float* row_loss, int64_t rows, const int64_t* counted, float* loss,
                   Stream stream) {
  return launch({.grid = dim3(1), .block = dim3(kReduceThreads), .stream = stream},
                reduce_loss_kernel, row_loss, rows, counted, loss);
}

template Status loss_rows<float>(const LossRows<float>&, Stream);
template Status loss_rows<bf16>(const LossRows<bf16>&, Stream);
template Status loss_rows<f16>(const LossRows<f16>&, Stream);

}  // namespace tigon
