// Cross entropy of rows of logits. With x a row (after the softcap c tanh(x / c)) and y its target:
//   lse = log sum_i exp(x_i)
//   loss = (1 - a) (lse - x_y) + a (lse - mean(x)) + z lse^2
//   dloss/dx_i = ((1 + 2 z lse) p_i - a / V - (1 - a) [i = y]) (1 - tanh^2),  p_i = exp(x_i - lse)
// and with class weights as LossOptions says.
// A block or a cluster of blocks works on one row: each logit is read once from memory, kept in
// shared memory as far as that reaches (the rest is read again, from L2 while it holds 2 rows per
// SM), and its gradient is written once over it. Statistics are fp32 and online.
#include "kernels/device/loss_rows.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "kernels/device/device.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/loss_forms.h"
#include "kernels/device/row_slice.h"

namespace tigon {
namespace {

// 128 threads for rows of up to kSmallRow bytes; else 512, of which three blocks per multiprocessor
// are one that loads while others reduce and store; in three blocks they leave 40 registers, which
// spill. A row is kept in shared memory, no pieces in registers.
constexpr ShapeTable<5> kShapes = {
    "loss_rows",
    {{128, 0, 1}, {512, 0, 3}, {512, 0, 3, 1, 2}, {512, 0, 3, 1, 4}, {512, 0, 3, 1, 8}}};
constexpr size_t kSmallRow = 16384;
constexpr size_t kStaticShared = 512;   // upper bound of a block's shared memory beside the row
constexpr size_t kSystemShared = 1024;  // that CUDA takes for itself per block
// 16-byte loads in flight per thread; 4 of them spill 4 bytes on sm_80 (nvcc 13.0).
constexpr int kBatch = 3;
constexpr int kReduceThreads = 1024;

// The statistics of all blocks of the cluster, joined in the same order in each of them.
template <LossForm kForm>
TIGON_DEVICE Statistics<kForm> join_cluster(const Statistics<kForm>& block) {
  using Sums = Statistics<kForm>;
  TIGON_SHARED(Sums, mine, [1]);
  if (threadIdx.x == 0) mine[0] = block;
  if (!planted("loss.no_cluster_sync_before")) cluster_sync();
  Sums all = *cluster_map(&mine[0], 0);
  for (unsigned rank = 1; rank < cluster_size(); ++rank)
    all = JoinStatistics<kForm>{}(all, *cluster_map(&mine[0], rank));
  // Nobody leaves while others read its shared memory.
  if (!planted("loss.cluster_leaves_early")) cluster_sync();
  return all;
}

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
template <int kThreads, LossForm kForm, class T>
TIGON_DEVICE Statistics<kForm> read_row(const T* x, const Slice& s, int columns, unsigned rank,
                                        Vec<T>* keep, int kept, const AddLogits<kForm>& add) {
  constexpr int kWidth = kVec<T>;
  Statistics<kForm> statistics;
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
      add(statistics, f, s.head + (i + b * kThreads) * kWidth);
    }
  }
  for_each_end<kThreads>(s, columns, rank, threadIdx.x, [&](int c) {
    float f[1] = {to_float(load(x + c))};
    add(statistics, f, c);
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
template <int kThreads, LossForm kForm, class T>
TIGON_DEVICE void write_gradient(T* x, const Slice& s, int columns, unsigned rank,
                                 const Vec<T>* keep, int kept, const LossGradient<kForm>& gradient,
                                 int y, float at_target) {
  constexpr int kWidth = kVec<T>;
  const auto write = [&](int i, const Vec<T>& logits) {
    const int column = s.head + i * kWidth;
    float f[kWidth];
    unpack(logits, f);
    if (y < column || y >= column + kWidth) {
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) f[j] = gradient(f[j], 0.0f, column + j);
    } else {
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        f[j] = gradient(f[j], column + j == y ? at_target : 0.0f, column + j);
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
    float f = gradient(to_float(load(x + c)), c == y ? at_target : 0.0f, c);
    if (planted("loss.target_gradient_rounded") && c == y) f = after_rounding<T>(f, at_target);
    store(x + c, from_float<T>(f));
  });
}

// What class weights and the mean make of a row's loss and gradient.
struct RowFactors {
  float upstream;    // of the gradient
  float weight;      // of the target's class
  float z_loss;      // so that the division by the weights is one by the rows
  float class_mean;  // mean of all class weights, for smoothing
};

template <LossForm kForm, class T>
TIGON_DEVICE RowFactors factors_of(const LossRows<T>& a, int64_t row, int64_t target) {
  const bool mean = a.options.reduction == Reduction::kMean;
  RowFactors f = {1.0f, 1.0f, a.options.z_loss, 1.0f};
  const bool per_row =
      a.options.reduction == Reduction::kNone && !planted("loss.dloss_of_first_row");
  if (a.dloss != nullptr && !planted("loss.dloss_ignored"))
    f.upstream = load(a.dloss + (per_row ? row : 0));
  const float rows = mean ? load(&a.totals->rows) : 1.0f;
  f.upstream = rows != 0.0f ? f.upstream / rows : 0.0f;  // a normaliser may be 0
  if (kForm != LossForm::kGeneral || a.class_weight == nullptr) return f;
  f.weight = load(a.class_weight + target);
  if (a.options.label_smoothing != 0.0f)
    f.class_mean = load(&a.totals->all_classes) / static_cast<float>(a.columns);
  if (!mean || planted("loss.weights_divided_by_rows")) return f;
  const float weight = load(&a.totals->weight);
  const float mean_weight = weight == rows ? 1.0f : weight / rows;  // 1 for a normaliser of 0
  f.upstream = weight != 0.0f ? f.upstream / mean_weight : 0.0f;
  if (!planted("loss.z_loss_divided_by_weights")) f.z_loss *= mean_weight;
  return f;
}

// s.sum is of the logits times their weights.
template <class T, class Sums>
TIGON_DEVICE float row_loss(const LossRows<T>& a, const RowFactors& f, const Sums& s, float lse,
                            float target) {
  const float smoothing = a.options.label_smoothing;
  float loss = (1.0f - smoothing) * f.weight * (lse - target) + f.z_loss * lse * lse;
  // Only then, because the mean of a row with a logit of -inf is -inf.
  const float sum = planted("loss.smoothing_sum_missing") ? 0.0f : s.sum;
  if (smoothing != 0.0f)
    loss += smoothing * (f.class_mean * lse - sum / static_cast<float>(a.columns));
  return loss;
}

// Stores what is asked for beside loss and lse; `right` is NaN for an invalid target.
template <class T>
TIGON_DEVICE void write_results(const LossRows<T>& a, int64_t row,
                                const Statistics<LossForm::kGeneral>& s, float lse, float right) {
  if (a.z_part != nullptr) store(a.z_part + row, a.options.z_loss * lse * lse);
  if (a.accuracy != nullptr) store(a.accuracy + row, s.beaten ? 0.0f * right : right);
  if (a.entropy != nullptr) store(a.entropy + row, logf(s.exp.sum) - s.moment / s.exp.sum);
}

// Blocks per multiprocessor that the registers must leave room for.
constexpr int blocks_of(int blocks, LossForm form) {
  return blocks == 1 || form == LossForm::kGeneral ? 1
         : form == LossForm::kPlain                ? blocks
                                                   : blocks - 1;
}

template <class T, int kThreads, int kBlocks, LossForm kForm>
TIGON_KERNEL(kThreads, blocks_of(kBlocks, kForm))
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
      if (kForm == LossForm::kGeneral && !planted("loss.ignored_results_kept"))
        for (float* result : {a.z_part, a.accuracy, a.entropy})
          if (result != nullptr) store(result + row, 0.0f);
    }
    return;
  }
  if (planted("loss.target_off_by_one") && target + 1 < a.columns) ++target;
  const int y = target >= 0 && target < a.columns ? static_cast<int>(target) : -1;  // -1: invalid
  const bool valid = y >= 0;
  const Softcap<kForm> softcap = {a.options.softcap, 1.0f / a.options.softcap};
  const float* const weight = a.options.label_smoothing != 0.0f ? a.class_weight : nullptr;
  float lse;
  if (forward) {
    // Read before the first barrier: after it, the gradient takes the logit's place.
    const bool reads_target = valid && (kForm == LossForm::kGeneral || writes_row);
    const float target_logit = reads_target ? to_float(load(x + y)) : NAN;
    float x_y = planted("loss.target_without_softcap") ? target_logit : softcap(target_logit);
    const AddLogits<kForm> add = {softcap, weight, target_logit, y};
    Statistics<kForm> s = read_row<kThreads>(x, slice, columns, rank, keep, kept, add);
    s = block_reduce<kThreads>(s, JoinStatistics<kForm>{});
    if (planted("loss.target_read_late") && writes_row && valid)
      x_y = softcap(to_float(load(x + y)));
    if (blocks > 1 && !planted("loss.cluster_not_joined")) s = join_cluster(s);
    lse = s.exp.max + logf(s.exp.sum);
    if (writes_row) {
      RowFactors f = {1.0f, 1.0f, a.options.z_loss, 1.0f};  // x_y of an invalid target is NaN
      if (kForm == LossForm::kGeneral && valid) f = factors_of<kForm>(a, row, y);
      store(a.lse + row, lse);
      store(a.loss + row, row_loss(a, f, s, lse, x_y));
      if constexpr (kForm == LossForm::kGeneral)
        write_results(a, row, s, lse, !valid ? NAN : x_y == x_y ? 1.0f : 0.0f);
    }
  } else {
    lse = load(a.lse + row);
  }
  if (!backward) return;
  RowFactors f = {NAN, 1.0f, 0.0f, 0.0f};  // an invalid target makes the row NaN
  if (valid) f = factors_of<kForm>(a, row, y);
  if (planted("loss.weight_not_in_gradient")) f.weight = 1.0f;
  if (planted("loss.invalid_target_ignored") && !valid) f.upstream = 0.0f;
  const float g = f.upstream, smoothing = a.options.label_smoothing;
  const float z_loss = planted("loss.z_loss_slope_missing") ? 0.0f : f.z_loss;
  const float per_class = smoothing / static_cast<float>(columns);
  const bool weighted = kForm == LossForm::kGeneral && a.class_weight != nullptr;
  const float probability =
      weighted ? (1.0f - smoothing) * f.weight + smoothing * f.class_mean : 1.0f;
  const LossGradient<kForm> gradient = {
      softcap, lse, g * (probability + 2.0f * z_loss * lse),
      g * (planted("loss.smoothing_slope_missing") ? 0.0f : per_class), weight};
  write_gradient<kThreads>(
      x, slice, columns, rank, keep, forward ? kept : 0, gradient, y,
      g * f.weight * (planted("loss.smoothing_keeps_target") ? 1.0f : 1.0f - smoothing));
  if (planted("loss.row_overrun") && writes_row) store(x + columns, from_float<T>(0.0f));
}

TIGON_KERNEL(kReduceThreads)
count_rows_kernel(const int64_t* target, int64_t rows, LossOptions options,
                  const float* class_weight, int64_t columns, const float* normaliser,
                  LossTotals* totals) {
  if (planted("loss.normaliser_unused")) normaliser = nullptr;
  if (normaliser != nullptr) rows = 0;
  int64_t n = 0;
  float weight = 0.0f, all_classes = 0.0f;
  for (int64_t i = threadIdx.x; i < rows; i += kReduceThreads) {
    const int64_t y = load(target + i);
    if (y == options.ignore_index && !planted("loss.ignored_counted")) continue;
    ++n;
    if (class_weight != nullptr && y >= 0 && y < columns) weight += load(class_weight + y);
  }
  if (class_weight != nullptr && options.label_smoothing != 0.0f)
    for (int64_t i = threadIdx.x; i < columns; i += kReduceThreads)
      all_classes += load(class_weight + i);
  n = block_reduce<kReduceThreads>(n, Sum{});
  weight = block_sum<kReduceThreads>(weight);
  all_classes = block_sum<kReduceThreads>(all_classes);
  if (threadIdx.x != 0) return;
  store(&totals->rows, normaliser != nullptr ? load(normaliser) : static_cast<float>(n));
  store(&totals->weight, normaliser != nullptr ? load(normaliser) : weight);
  store(&totals->all_classes, all_classes);
}

TIGON_KERNEL(kReduceThreads)
reduce_rows_kernel(const float* values, int64_t rows, const LossTotals* totals, DivideBy divisor,
                   float* out) {
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < rows; i += kReduceThreads) sum += load(values + i);
  sum = block_sum<kReduceThreads>(sum);
  if (threadIdx.x != 0) return;
  float n = 1.0f;
  if (planted("loss.sum_for_mean")) divisor = DivideBy::kNothing;
  if (divisor == DivideBy::kRows) n = load(&totals->rows);
  if (divisor == DivideBy::kWeight)
    n = planted("loss.weights_divided_by_rows") ? load(&totals->rows) : load(&totals->weight);
  store(out, n != 0.0f ? sum / n : sum * 0.0f);  // 0, or NaN
}

// Bytes of shared memory for a block's slice where this many blocks share a multiprocessor.
size_t room(const DeviceLimits& limits, int blocks) {
  return std::min(limits.shared_per_block - kStaticShared,
                  limits.shared_per_multiprocessor / static_cast<size_t>(blocks) - kSystemShared -
                      kStaticShared);
}

// Index of the shape to take: of those that keep a row whole the one with the fewest blocks per
// row, unless `tigon tune` has found a better one. Passes of one sweep have nothing to keep.
size_t shape_of(LossPass pass, int64_t rows, size_t row_bytes) {
  const DeviceLimits limits = device_limits();
  const LaunchShape* const shapes = kShapes.shapes;
  const bool small = row_bytes <= kSmallRow;
  size_t usual = small ? 0 : 1;
  while (!small && pass == LossPass::kForwardBackward && limits.clusters &&
         usual + 1 < std::size(kShapes.shapes) &&
         row_bytes >
             static_cast<size_t>(shapes[usual].cluster) * room(limits, shapes[usual].blocks_per_sm))
    ++usual;
  const auto can_take = [&](size_t i) {
    return (i > 0 || small) && has_clusters_for(shapes[i]) && rows <= INT_MAX / shapes[i].cluster;
  };
  const char* const name = pass == LossPass::kForward    ? "loss_rows.forward"
                           : pass == LossPass::kBackward ? "loss_rows.backward"
                                                         : "loss_rows.forward_backward";
  const auto vectors = static_cast<int64_t>(row_bytes / 16);
  return chosen_shape<kShapes>(vectors, usual, can_take, name);
}

// Bytes of a block's slice of a row that it keeps in shared memory.
size_t kept_bytes(LossPass pass, size_t row_bytes, const LaunchShape& shape) {
  if (pass != LossPass::kForwardBackward) return 0;
  if (shape == kShapes.shapes[0]) return row_bytes;
  const DeviceLimits limits = device_limits();
  const size_t slice = row_bytes / static_cast<size_t>(shape.cluster) + 16;
  return std::min(slice, slice <= room(limits, shape.blocks_per_sm) ? slice : room(limits, 2));
}

template <LaunchShape kShape, class Elem>
Status launch_rows(const LossRows<Elem>& a, size_t kept_bytes, Stream stream) {
  constexpr int kThreads = kShape.lanes, kBlocks = kShape.blocks_per_sm;
  const int64_t blocks = a.rows * kShape.cluster;
  if (blocks > INT_MAX) return unsupported("loss: rows times blocks per row must be below 2^31");
  const int kept = static_cast<int>(kept_bytes / sizeof(Vec<Elem>));
  const LaunchConfig config{
      .grid = dim3(static_cast<unsigned>(blocks)),
      .block = dim3(kThreads),
      .shared_bytes = (static_cast<size_t>(kept) - (planted("loss.shared_too_small") && kept > 0)) *
                      sizeof(Vec<Elem>),
      .stream = stream,
      .cluster = static_cast<unsigned>(kShape.cluster)};
  const bool general = a.class_weight != nullptr || a.z_part != nullptr || a.accuracy != nullptr ||
                       a.entropy != nullptr;
  if (general)
    return launch(config, loss_rows_kernel<Elem, kThreads, kBlocks, LossForm::kGeneral>, a, kept);
  if (a.options.softcap > 0.0f)
    return launch(config, loss_rows_kernel<Elem, kThreads, kBlocks, LossForm::kSoftcap>, a, kept);
  return launch(config, loss_rows_kernel<Elem, kThreads, kBlocks, LossForm::kPlain>, a, kept);
}

}  // namespace

template <class Elem>
Status loss_rows(const LossRows<Elem>& a, Stream stream) {
  if (a.columns > INT_MAX) return unsupported("loss: the vocabulary must be below 2^31");
  const size_t row_bytes = static_cast<size_t>(a.columns) * sizeof(Elem);
  const size_t shape = shape_of(a.pass, a.rows, row_bytes);
  const size_t kept = kept_bytes(a.pass, row_bytes, kShapes.shapes[shape]);
  return with_shape<kShapes>(
      shape, [&]<LaunchShape kShape> { return launch_rows<kShape>(a, kept, stream); });
}

Status count_rows(const int64_t* target, int64_t rows, const LossOptions& options,
                  const float* class_weight, int64_t columns, const float* normaliser,
                  LossTotals* totals, Stream stream) {
  if (planted("loss.count_skipped")) return {};
  return launch({.grid = dim3(1), .block = dim3(kReduceThreads), .stream = stream},
                count_rows_kernel, target, rows, options, class_weight, columns, normaliser,
                totals);
}

Status reduce_rows(const float* values, int64_t rows, const LossTotals* totals, DivideBy divisor,
                   float* out, Stream stream) {
  return launch({.grid = dim3(1), .block = dim3(kReduceThreads), .stream = stream},
                reduce_rows_kernel, values, rows, totals, divisor, out);
}

template Status loss_rows<float>(const LossRows<float>&, Stream);
template Status loss_rows<bf16>(const LossRows<bf16>&, Stream);
template Status loss_rows<f16>(const LossRows<f16>&, Stream);

}  // namespace tigon
