// SPDX-License-Identifier: Apache-2.0
// log_prob   log-probabilities of tokens from logits [T, V] in memory, with their entropy, and the
//            gradient of both
//
// Forward: a block or a cluster reads a row once and keeps the running maximum and the sums about
// it in registers. Nothing of the length of a row is written. How a row is shared depends on its
// length alone: its results have the same bits in every batch.
// Backward: p comes from the saved lse, so nothing is summed, and the blocks of a row know nothing
// of each other. The gradient may take the place of the logits.
//
// A rank with some of the classes sweeps in the same way: kernels/vocab_parallel_log_prob.
//
// Bytes: T*V*elem forward, 2*T*V*elem backward.
#include "kernels/log_prob/log_prob.h"

#include <climits>

#include "kernels/device/alignment.h"
#include "kernels/device/cluster_exchange.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/row_parts.h"
#include "kernels/log_prob/row.h"
#include "kernels/log_prob/statistics.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/instantiate.h"

namespace tigon::log_prob {
namespace {

// Of both passes. With three blocks per multiprocessor one loads while others start or reduce.
// `cluster` blocks share a row: in forward they are a cluster, because their sums are joined.
constexpr ShapeTable<5> kShapes = {
    .name = "log_prob",
    .shapes = {{.lanes = 128, .blocks_per_sm = 6},
               {.lanes = 512, .blocks_per_sm = 3},
               {.lanes = 512, .blocks_per_sm = 3, .cluster = 2},
               {.lanes = 512, .blocks_per_sm = 3, .cluster = 4},
               {.lanes = 512, .blocks_per_sm = 3, .cluster = 8}},
};
// A block's part of a row in bytes, while there are shapes with more blocks. Smaller parts end more
// evenly, larger ones join less often; backward joins nothing.
constexpr int64_t kForwardPart = 131072, kBackwardPart = 65536;

// Blocks per multiprocessor that the registers of backward must leave room for. The entropy's
// gradient takes more of them, and would spill.
constexpr int blocks_of(const LaunchShape& shape, bool entropy) {
  return entropy ? shape.blocks_per_sm * 2 / 3 : shape.blocks_per_sm;
}

// Ends a row: its results, or, where there are other classes, its statistics.
template <class P>
TIGON_DEVICE void end_row(const Forward<P>& a, const Statistics<float>& statistics, int64_t row,
                          const RowSums& s, float x_y) {
  if (statistics.few == nullptr) return write_sums(a, row, s, x_y);
  store_statistics(statistics, row, s, x_y);
}
template <class P>
TIGON_DEVICE void end_ignored_row(const Forward<P>& a, const Statistics<float>& statistics,
                                  int64_t row) {
  if (statistics.few == nullptr) return write_row(a, row, 0.0f, 0.0f, 0.0f);
  store_statistics(statistics, row, RowSums{}, NAN);
}

// slope: log2(e) / temperature.
template <class P, int kThreads, int kBlocks, bool kEntropy>
TIGON_KERNEL(kThreads, kBlocks)
forward_kernel(Forward<P> a, Shard shard, Statistics<float> statistics, float slope) {
  using T = typename P::Elem;
  using Scratch = ExchangeScratch<RowSums, kThreads>;
  TIGON_SHARED(Scratch, scratch, [1]);
  const unsigned blocks = cluster_size(), rank = cluster_rank();
  const int64_t row = blockIdx.x / blocks;
  const int columns = static_cast<int>(a.logits.shape[1]);
  const bool writes_row = rank == 0 && threadIdx.x == 0;
  const int64_t target = load(a.target.data + row);
  if (target == a.ignore_index) {
    if (writes_row) end_ignored_row(a, statistics, row);
    return;
  }
  const T* const x = a.logits.data + row * a.logits.stride[0];  // [V]
  const int y = held_target(target, shard, columns);
  const float x_y = writes_row && y >= 0 ? to_float(load(x + y)) : NAN;
  const Slice slice = slice_of<kVec<T>>(x, columns, rank, blocks);
  begin_exchange(scratch[0]);
  RowSums s = sweep<kEntropy, kThreads>(x, slice, columns, rank, slope);
  s = cluster_exchange<kThreads>(s, JoinRowSums<kEntropy>{slope}, scratch[0]);
  if (writes_row) end_row(a, statistics, row, s, x_y);
}

// kWidth: 1 where the rows of logits and dlogits do not start equally far from 16-byte boundaries.
// `blocks` of them share a row.
template <class P, int kWidth, int kThreads, int kBlocks, bool kEntropy>
TIGON_KERNEL(kThreads, kBlocks)
backward_kernel(Backward<P> a, Shard shard, float inverse, unsigned blocks) {
  using T = typename P::Elem;
  const int thread = static_cast<int>(threadIdx.x), columns = static_cast<int>(a.logits.shape[1]);
  const unsigned rank = blockIdx.x & (blocks - 1);
  const int64_t row = blockIdx.x / blocks;
  const T* const x = a.logits.data + row * a.logits.stride[0];  // [V]
  T* const dx = a.dlogits.data + row * a.dlogits.stride[0];     // [V]
  const Slice s = slice_of<kWidth>(x, columns, rank, blocks);
  const int64_t target = load(a.target.data + row);
  if (target == a.ignore_index) return write_zeros<kWidth, kThreads>(dx, s, columns, rank, thread);
  const int y = class_of(target, shard);
  const RowGradient<kEntropy> gradient = row_gradient<kEntropy>(a, row, y, inverse);
  write_gradient<kWidth, kThreads>(x, dx, s, columns, rank, thread, gradient,
                                   held_target(target, shard, columns));
}

// ---- launchers ----------------------------------------------------------------------------------

template <class Args>
Status check(const Args& a) {
  const int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (rows < 0 || columns < 1) return invalid("log_prob: logits must be [T >= 0, V >= 1]");
  if (rows > INT_MAX) return unsupported("log_prob: there may be fewer than 2^31 rows");
  if (columns > INT_MAX) return unsupported("log_prob: the vocabulary must be below 2^31");
  if (!has_shape(a.logits, rows, columns) || (rows > 1 && a.logits.stride[0] < columns))
    return invalid("log_prob: rows of logits must be contiguous and must not overlap");
  if (!has_shape(a.target, rows) || !has_shape(a.lse, rows))
    return invalid("log_prob: target and lse must be [T]");
  if (is_missing(a.logits) || is_missing(a.target) || is_missing(a.lse))
    return invalid("log_prob: logits, target and lse must not be null");
  if (a.entropy && !has_shape(a.entropy, rows)) return invalid("log_prob: entropy must be [T]");
  if (!is_temperature(a.temperature))
    return invalid("log_prob: temperature and its inverse must be finite and above 0");
  return {};
}

template <class P>
Status check_gradients(const Backward<P>& a) {
  const int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (!has_shape(a.dlogits, rows, columns) || (rows > 1 && a.dlogits.stride[0] < columns))
    return invalid("log_prob: rows of dlogits must be contiguous and must not overlap");
  if (!has_shape(a.dlogp, rows)) return invalid("log_prob: dlogp must be [T]");
  if (is_missing(a.dlogits) || is_missing(a.dlogp))
    return invalid("log_prob: dlogits and dlogp must not be null");
  if (!a.dentropy) return {};
  if (!has_shape(a.dentropy, rows)) return invalid("log_prob: dentropy must be [T]");
  if (is_missing(a.entropy) || !has_shape(a.entropy, rows))
    return invalid("log_prob: the gradient of the entropy takes the entropy [T] of forward");
  return {};
}

template <class P, LaunchShape kShape, bool kEntropy>
Status launch_forward(const Forward<P>& a, const Shard& shard, const Statistics<float>& statistics,
                      Stream stream) {
  constexpr int kThreads = kShape.lanes, kBlocks = kShape.blocks_per_sm;
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>(a.logits.shape[0] * kShape.cluster)),
                            .block = dim3(kThreads),
                            .stream = stream,
                            .cluster = static_cast<unsigned>(kShape.cluster)};
  return launch(config, forward_kernel<P, kThreads, kBlocks, kEntropy>, a, shard, statistics,
                kLog2E / a.temperature);
}

template <class P, LaunchShape kShape, bool kEntropy>
Status launch_backward(const Backward<P>& a, const Shard& shard, bool by_elements, Stream stream) {
  using T = typename P::Elem;
  constexpr int kThreads = kShape.lanes, kBlocks = blocks_of(kShape, kEntropy);
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>(a.logits.shape[0] * kShape.cluster)),
                            .block = dim3(kThreads),
                            .stream = stream};
  const auto kernel = by_elements ? backward_kernel<P, 1, kThreads, kBlocks, kEntropy>
                                  : backward_kernel<P, kVec<T>, kThreads, kBlocks, kEntropy>;
  return launch(config, kernel, a, shard, 1.0f / a.temperature,
                static_cast<unsigned>(kShape.cluster));
}

// Logits of all classes.
template <class Args>
Shard all_of(const Args& a) {
  return {.first_class = 0, .classes = a.logits.shape[1]};
}

}  // namespace

template <class P>
Status forward_of_shard(const Forward<P>& a, const Shard& shard,
                        const Statistics<float>& statistics, Stream stream) {
  const auto can_take = [&](size_t i) {
    return has_blocks_for(kShapes.shapes[i], a.logits.shape[0]) &&
           has_clusters_for(kShapes.shapes[i]);
  };
  const size_t shape =
      shape_by_parts<kShapes>(row_bytes(a.logits), kForwardPart, "log_prob.forward", can_take);
  return with_shape<kShapes>(shape, [&]<LaunchShape kShape> {
    return a.entropy || statistics.moment != nullptr
               ? launch_forward<P, kShape, true>(a, shard, statistics, stream)
               : launch_forward<P, kShape, false>(a, shard, statistics, stream);
  });
}

template <class P>
Status backward_of_shard(const Backward<P>& a, const Shard& shard, Stream stream) {
  const auto can_take = [&](size_t i) {
    return has_blocks_for(kShapes.shapes[i], a.logits.shape[0]);
  };
  const bool by_elements = differ_in_alignment(a.logits, a.dlogits);
  const size_t shape = shape_by_parts<kShapes>(
      row_bytes(a.logits), kBackwardPart,
      by_elements ? "log_prob.backward.elements" : "log_prob.backward.vectors", can_take);
  return with_shape<kShapes>(shape, [&]<LaunchShape kShape> {
    return a.dentropy ? launch_backward<P, kShape, true>(a, shard, by_elements, stream)
                      : launch_backward<P, kShape, false>(a, shard, by_elements, stream);
  });
}

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  if (is_missing(a.logp) || !has_shape(a.logp, a.logits.shape[0]))
    return invalid("log_prob: logp must be [T]");
  return forward_of_shard(a, all_of(a), {}, stream);
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  if (const Status s = check_gradients(a); !s.ok()) return s;
  return backward_of_shard(a, all_of(a), stream);
}

TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE(backward, Backward);
template Status forward_of_shard(const Forward<F32>&, const Shard&, const Statistics<float>&,
                                 Stream);
template Status forward_of_shard(const Forward<BF16>&, const Shard&, const Statistics<float>&,
                                 Stream);
template Status forward_of_shard(const Forward<F16>&, const Shard&, const Statistics<float>&,
                                 Stream);
template Status backward_of_shard(const Backward<F32>&, const Shard&, Stream);
template Status backward_of_shard(const Backward<BF16>&, const Shard&, Stream);
template Status backward_of_shard(const Backward<F16>&, const Shard&, Stream);

}  // namespace tigon::log_prob
