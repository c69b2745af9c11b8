// SPDX-License-Identifier: Apache-2.0
// Cross entropy of rows of logits. With x a row (after the softcap c tanh(x / c)) and y its target:
//   lse = log sum_i exp(x_i)
//   loss = (1 - a) (lse - x_y) + a (lse - mean(x)) + z lse^2
//   dloss/dx_i = ((1 + 2 z lse) p_i - a / V - (1 - a) [i = y]) (1 - tanh^2),  p_i = exp(x_i - lse)
// and with class weights as LossOptions says.
// A block or a cluster of blocks works on one row: each logit is read once from memory, kept in
// shared memory as far as that reaches (other columns are read again, from L2 while it holds 2 rows
// per SM), and its gradient is written once over it. Statistics are fp32 and online. Wide rows in
// the plain form have a kernel of their own (held.h).
#include "kernels/loss/rows.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "kernels/device/device.h"
#include "kernels/device/device_limits.h"
#include "kernels/loss/held.h"
#include "kernels/loss/row.h"
#include "kernels/loss/sweep.h"

namespace tigon {
namespace {

// Shapes without vectors sweep over a row that shared memory holds: 128 threads for rows of up to
// kSmallRow bytes, else 512. With three blocks per multiprocessor one loads while others reduce and
// store; registers leave no room for a fourth. Shapes with vectors are those of held.h; the last
// one is for devices without clusters.
constexpr ShapeTable<12> kShapes = {
    .name = "loss_rows",
    .shapes =
        {
            {.lanes = 128, .blocks_per_sm = 1},
            {.lanes = 512, .blocks_per_sm = 3},
            {.lanes = 512, .blocks_per_sm = 3, .cluster = 2},
            {.lanes = 512, .blocks_per_sm = 3, .cluster = 4},
            {.lanes = 512, .blocks_per_sm = 3, .cluster = 8},
            {.lanes = 256, .vectors = 8, .blocks_per_sm = 4},
            {.lanes = 320, .vectors = 8, .blocks_per_sm = 3},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 2},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 2, .cluster = 2},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 2, .cluster = 4},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 2, .cluster = 8},
            {.lanes = 1024, .vectors = 8, .blocks_per_sm = 1},
        },
};
constexpr size_t kFirstPlain = 5;  // for the plain form only
// Bytes of later rows in flight to L2. Half as many are slower.
constexpr int64_t kBytesAhead = int64_t{4} << 20;
constexpr size_t kSmallRow = 16384;
constexpr size_t kStaticShared = 512;  // upper bound of a block's shared memory beside the row
constexpr int kReduceThreads = 1024;

// The statistics of all blocks of the cluster, joined in the same order in each of them.
template <LossForm kForm>
TIGON_DEVICE Statistics<kForm> join_cluster(const Statistics<kForm>& block) {
  using Sums = Statistics<kForm>;
  TIGON_SHARED(Sums, mine, [1]);
  if (threadIdx.x == 0) mine[0] = block;
  cluster_sync();
  Sums all = *cluster_map(&mine[0], 0);
  for (unsigned rank = 1; rank < cluster_size(); ++rank)
    all = JoinStatistics<kForm>{}(all, *cluster_map(&mine[0], rank));
  // Nobody leaves while others read its shared memory.
  cluster_sync();
  return all;
}

// Blocks per multiprocessor that the registers must leave room for.
constexpr int blocks_of(int blocks, LossForm form) {
  return blocks == 1 || form == LossForm::kGeneral ? 1
         : form == LossForm::kPlain                ? blocks
                                                   : blocks - 1;
}

template <class T, int kThreads, int kBlocks, LossForm kForm>
TIGON_KERNEL(kThreads, blocks_of(kBlocks, kForm))
loss_rows_kernel(LossRows<T> a, int resident) {
  TIGON_DYNAMIC_SHARED(Vec<T>, on_chip);
  const unsigned blocks = cluster_size(), rank = cluster_rank();
  const int64_t row = blockIdx.x / blocks;
  const int columns = static_cast<int>(a.columns);
  T* const x = a.logits + row * a.stride;
  const Slice slice = slice_of<kVec<T>>(x, columns, rank, blocks);
  const bool writes_row = rank == 0 && threadIdx.x == 0;
  const bool forward = a.pass != LossPass::kBackward, backward = a.pass != LossPass::kForward;
  int64_t target = load(a.target + row);
  if (target == a.options.ignore_index) {
    if (backward) fill_zero<T, kThreads>(x, slice, columns, rank);
    if (forward && writes_row) write_ignored_row<kForm>(a, row);
    return;
  }
  const int y = target >= 0 && target < a.columns ? static_cast<int>(target) : -1;  // -1: invalid
  const bool valid = y >= 0;
  float lse;
  if (forward) {
    const Softcap<kForm> softcap = {a.options.softcap, 1.0f / a.options.softcap};
    // Read before the first barrier: after it, the gradient takes the logit's place.
    const float target_logit = valid && writes_row ? to_float(load(x + y)) : NAN;
    float x_y = softcap(target_logit);
    const AddLogits<kForm> add = {softcap, smoothing_weights(a), 0};
    Statistics<kForm> s = read_row<kThreads>(x, slice, columns, rank, on_chip, resident, add);
    s = block_reduce<kThreads>(s, JoinStatistics<kForm>{});
    if (blocks > 1) s = join_cluster(s);
    lse = s.exp.max + logf(s.exp.sum);
    if (writes_row) write_row<kForm>(a, row, s, lse, y, x_y);
  } else {
    lse = load(a.lse + row);
  }
  if (!backward) return;
  const RowGradient<kForm> g = row_gradient<kForm>(a, gradient_factors<kForm>(a, row, y), lse);
  write_gradient<kThreads>(x, slice, columns, rank, on_chip, forward ? resident : 0, g.of_column, y,
                           g.at_target);
}

TIGON_KERNEL(kReduceThreads)
count_rows_kernel(const int64_t* target, int64_t rows, LossOptions options,
                  const float* class_weight, int64_t columns, const float* normaliser,
                  LossTotals* totals) {
  dependency_launch();
  if (normaliser != nullptr) rows = 0;
  int64_t n = 0;
  float weight = 0.0f, all_classes = 0.0f;
  for (int64_t i = threadIdx.x; i < rows; i += kReduceThreads) {
    const int64_t y = load(target + i);
    if (y == options.ignore_index) continue;
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
  dependency_wait();
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < rows; i += kReduceThreads) sum += load(values + i);
  sum = block_sum<kReduceThreads>(sum);
  if (threadIdx.x != 0) return;
  float n = 1.0f;
  if (divisor == DivideBy::kRows) n = load(&totals->rows);
  if (divisor == DivideBy::kWeight) n = load(&totals->weight);
  store(out, n != 0.0f ? sum / n : sum * 0.0f);  // 0, or NaN
}

// Bytes of shared memory for a block's slice where this many blocks share a multiprocessor.
size_t room(int blocks) { return shared_room(blocks, kStaticShared); }

// Index of the shape to take: of those that keep a row whole the one with the fewest blocks per
// row, unless `tigon tune` has found a better one. Passes of one sweep have nothing to keep.
template <class Elem>
size_t shape_of(const LossRows<Elem>& a, size_t row_bytes) {
  const LaunchShape* const shapes = kShapes.shapes;
  const LossPass pass = a.pass;
  const auto vectors = static_cast<int64_t>(row_bytes / 16);
  const bool small = row_bytes <= kSmallRow;
  const bool plain = pass == LossPass::kForwardBackward && form_of(a) == LossForm::kPlain;
  const auto can_take = [&](size_t i) {
    if (a.rows > INT_MAX / shapes[i].cluster) return false;
    if (is_held(shapes[i])) return plain && can_hold(shapes[i], vectors);
    return (i > 0 || small) && has_clusters_for(shapes[i]);
  };
  size_t usual = first_shape<kShapes>(can_take, kFirstPlain);
  if (usual == std::size(kShapes.shapes)) {
    usual = small ? 0 : 1;
    while (!small && pass == LossPass::kForwardBackward && device_limits().clusters &&
           usual + 1 < kFirstPlain &&
           row_bytes >
               static_cast<size_t>(shapes[usual].cluster) * room(shapes[usual].blocks_per_sm))
      ++usual;
  }
  const char* const name = pass == LossPass::kForward    ? "loss_rows.forward"
                           : pass == LossPass::kBackward ? "loss_rows.backward"
                                                         : "loss_rows.forward_backward";
  return chosen_shape<kShapes>(vectors, usual, can_take, name);
}

// Bytes of a block's slice of a row that stays in shared memory.
size_t resident_bytes(LossPass pass, size_t row_bytes, const LaunchShape& shape) {
  if (pass != LossPass::kForwardBackward) return 0;
  if (shape == kShapes.shapes[0]) return row_bytes;
  const size_t slice = row_bytes / static_cast<size_t>(shape.cluster) + 16;
  return std::min(slice, slice <= room(shape.blocks_per_sm) ? slice : room(2));
}

template <LaunchShape kShape, class Elem>
Status launch_sweeps(const LossRows<Elem>& a, size_t resident_bytes, Stream stream) {
  constexpr int kThreads = kShape.lanes, kBlocks = kShape.blocks_per_sm;
  const int64_t blocks = a.rows * kShape.cluster;
  if (blocks > INT_MAX) return unsupported("loss: rows times blocks per row must be below 2^31");
  const int resident = static_cast<int>(resident_bytes / sizeof(Vec<Elem>));
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>(blocks)),
                            .block = dim3(kThreads),
                            .shared_bytes = static_cast<size_t>(resident) * sizeof(Vec<Elem>),
                            .stream = stream,
                            .cluster = static_cast<unsigned>(kShape.cluster)};
  return with_loss_form(a, [&]<LossForm kForm>() {
    return launch(config, loss_rows_kernel<Elem, kThreads, kBlocks, kForm>, a, resident);
  });
}

}  // namespace

template <class Elem>
Status loss_rows(const LossRows<Elem>& a, Stream stream) {
  const size_t row_bytes = static_cast<size_t>(a.columns) * sizeof(Elem);
  const size_t shape = shape_of(a, row_bytes);
  return with_shape<kShapes>(shape, [&]<LaunchShape kShape> {
    if constexpr (is_held(kShape))
      return launch_held(kShape, a.rows, static_cast<int64_t>(row_bytes / 16), kBytesAhead, stream,
                         loss_held_kernel<Elem, kShape.lanes, kShape.vectors, kShape.blocks_per_sm>,
                         a, a.after_count);
    else
      return launch_sweeps<kShape>(a, resident_bytes(a.pass, row_bytes, kShape), stream);
  });
}

Status count_rows(const int64_t* target, int64_t rows, const LossOptions& options,
                  const float* class_weight, int64_t columns, const float* normaliser,
                  LossTotals* totals, Stream stream) {
  return launch({.grid = dim3(1), .block = dim3(kReduceThreads), .stream = stream},
                count_rows_kernel, target, rows, options, class_weight, columns, normaliser,
                totals);
}

Status reduce_rows(const float* values, int64_t rows, const LossTotals* totals, DivideBy divisor,
                   float* out, Stream stream) {
  return launch(
      {.grid = dim3(1), .block = dim3(kReduceThreads), .stream = stream, .dependent = true},
      reduce_rows_kernel, values, rows, totals, divisor, out);
}

template Status loss_rows<float>(const LossRows<float>&, Stream);
template Status loss_rows<bf16>(const LossRows<bf16>&, Stream);
template Status loss_rows<f16>(const LossRows<f16>&, Stream);

}  // namespace tigon
