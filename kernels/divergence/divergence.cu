// SPDX-License-Identifier: Apache-2.0
// divergence   of a student's logits [T, V] from a teacher's, both in memory, and its gradient
//
// Forward: a block or a cluster reads both rows for their log-sum-exps, and once more for the
// divergence, which needs them. Nothing of the length of a row is written. How a row is shared
// depends on its length alone: its results have the same bits in every batch.
// Backward: both distributions come from the saved log-sum-exps, so nothing is summed, and the
// blocks of a row know nothing of each other. The gradient may take the place of the logits.
//
// Bytes: 4*T*V*elem forward, of which L2 may give half; 3*T*V*elem backward.
#include "kernels/divergence/divergence.h"

#include <climits>

#include "kernels/device/cluster_exchange.h"
#include "kernels/device/device_limits.h"
#include "kernels/divergence/row.h"
#include "kernels/log_prob/row.h"
#include "kernels/signature/checks.h"

namespace tigon::divergence {
namespace {

// Of both passes. Rows of up to kSmallRow bytes would leave most of a larger block without work.
// `cluster` blocks share a row: in forward they are a cluster, because their sums are joined.
constexpr ShapeTable<5> kShapes = {
    .name = "divergence",
    .shapes = {{.lanes = 128, .blocks_per_sm = 6},
               {.lanes = 512, .blocks_per_sm = 2},
               {.lanes = 512, .blocks_per_sm = 2, .cluster = 2},
               {.lanes = 512, .blocks_per_sm = 2, .cluster = 4},
               {.lanes = 512, .blocks_per_sm = 2, .cluster = 8}},
};
constexpr int64_t kSmallRow = 16384;
// A block's part of a row in bytes, while there are shapes with more blocks.
constexpr int64_t kPart = 65536;

template <class Args>
TIGON_DEVICE bool is_ignored(const Args& a, int64_t row) {
  return a.target.data != nullptr && load(a.target.data + row) == a.ignore_index;
}

template <class P>
TIGON_DEVICE void write_row(const Forward<P>& a, int64_t row, const Terms& t, float lse,
                            float teacher_lse) {
  store(a.loss.data + row, t.loss);
  store(a.lse.data + row, lse);
  store(a.teacher_lse.data + row, teacher_lse);
  store(a.slope.data + row, a.kind == Kind::kReverseKl ? t.loss : t.slope);
}

// kWidth: 1 where the rows of all tensors do not start equally far from 16-byte boundaries.
template <class P, int kWidth, int kThreads, int kBlocks>
TIGON_KERNEL(kThreads, kBlocks)
forward_kernel(Forward<P> a, float inverse) {
  using T = typename P::Elem;
  using SumScratch = ExchangeScratch<ExpSums, kThreads>;
  using TermScratch = ExchangeScratch<Terms, kThreads>;
  TIGON_SHARED(SumScratch, of_sums, [1]);
  TIGON_SHARED(TermScratch, of_terms, [1]);
  const unsigned blocks = cluster_size(), rank = cluster_rank();
  const int64_t row = blockIdx.x / blocks;
  const int columns = static_cast<int>(a.logits.shape[1]);
  const bool writes_row = rank == 0 && threadIdx.x == 0;
  if (is_ignored(a, row)) {
    if (writes_row) write_row(a, row, {}, 0.0f, 0.0f);
    return;
  }
  const T* const x = a.logits.data + row * a.logits.stride[0];    // [V]
  const T* const y = a.teacher.data + row * a.teacher.stride[0];  // [V]
  const Slice slice = slice_of<kWidth>(x, columns, rank, blocks);
  begin_exchange(of_sums[0]);
  begin_exchange(of_terms[0]);

  ExpSums sums;
  for_each_piece<kWidth, kThreads>(x, y, slice, columns, rank,
                                   [&](auto& f, auto& g, int) { add(sums, f, g, inverse); });
  sums = cluster_exchange<kThreads>(sums, JoinBoth{}, of_sums[0]);

  const Pair pair = {a.kind, a.beta, inverse, log_of(sums.student), log_of(sums.teacher)};
  Terms terms;
  for_each_piece<kWidth, kThreads>(x, y, slice, columns, rank,
                                   [&](auto& f, auto& g, int) { add(terms, pair, f, g); });
  terms = cluster_exchange<kThreads>(terms, AddTerms{}, of_terms[0]);
  if (writes_row) write_row(a, row, terms, pair.lse, pair.teacher_lse);
}

// kWidth as in forward. `blocks` of them share a row.
template <class P, int kWidth, int kThreads, int kBlocks>
TIGON_KERNEL(kThreads, kBlocks)
backward_kernel(Backward<P> a, float inverse, unsigned blocks) {
  using T = typename P::Elem;
  const unsigned rank = blockIdx.x & (blocks - 1);
  const int64_t row = blockIdx.x / blocks;
  const int columns = static_cast<int>(a.logits.shape[1]);
  const T* const x = a.logits.data + row * a.logits.stride[0];    // [V]
  const T* const y = a.teacher.data + row * a.teacher.stride[0];  // [V]
  T* const dx = a.dlogits.data + row * a.dlogits.stride[0];       // [V]
  const Slice slice = slice_of<kWidth>(x, columns, rank, blocks);
  if (is_ignored(a, row))
    return log_prob::write_zeros<kWidth, kThreads>(dx, slice, columns, rank,
                                                   static_cast<int>(threadIdx.x));
  const Pair pair = {a.kind, a.beta, inverse, load(a.lse.data + row),
                     load(a.teacher_lse.data + row)};
  const float scale = load(a.dloss.data + row) * inverse, slope = load(a.slope.data + row);
  for_each_piece<kWidth, kThreads>(x, y, slice, columns, rank, [&](auto& f, auto& g, int column) {
    write_gradient(dx + column, pair, f, g, scale, slope);
  });
}

// ---- launchers ----------------------------------------------------------------------------------

// jsd at an end of beta is one of the others.
template <class Args>
Args with_limits(Args a) {
  if (a.kind != Kind::kJsd) return a;
  if (a.beta == 0.0f) a.kind = Kind::kForwardKl;
  if (a.beta == 1.0f) a.kind = Kind::kReverseKl;
  return a;
}

template <class Args>
Status check_options(const Args& a) {
  if (a.kind < Kind::kForwardKl || a.kind > Kind::kJsd)
    return invalid("divergence: kind must be forward_kl, reverse_kl or jsd");
  if (!(a.beta >= 0.0f && a.beta <= 1.0f)) return invalid("divergence: beta must be from 0 to 1");
  if (!log_prob::is_temperature(a.temperature))
    return invalid("divergence: temperature and its inverse must be finite and above 0");
  return {};
}

template <class Args>
Status check(const Args& a) {
  const int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (rows < 0 || columns < 1) return invalid("divergence: logits must be [T >= 0, V >= 1]");
  if (rows > INT_MAX) return unsupported("divergence: there may be fewer than 2^31 rows");
  if (columns > INT_MAX) return unsupported("divergence: the vocabulary must be below 2^31");
  if (!has_shape(a.logits, rows, columns) || (rows > 1 && a.logits.stride[0] < columns))
    return invalid("divergence: rows of logits must be contiguous and must not overlap");
  if (!has_shape(a.teacher, rows, columns) || (rows > 1 && a.teacher.stride[0] < columns))
    return invalid(
        "divergence: teacher must be as logits are, its rows contiguous and without overlap");
  if (a.target && !has_shape(a.target, rows)) return invalid("divergence: target must be [T]");
  if (!has_shape(a.lse, rows) || !has_shape(a.teacher_lse, rows) || !has_shape(a.slope, rows))
    return invalid("divergence: lse, teacher_lse and slope must be [T]");
  if (is_missing(a.logits) || is_missing(a.teacher) || is_missing(a.lse) ||
      is_missing(a.teacher_lse) || is_missing(a.slope))
    return invalid("divergence: logits, teacher, lse, teacher_lse and slope must not be null");
  return check_options(a);
}

template <class P>
Status check_gradients(const Backward<P>& a) {
  const int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (!has_shape(a.dlogits, rows, columns) || (rows > 1 && a.dlogits.stride[0] < columns))
    return invalid("divergence: rows of dlogits must be contiguous and must not overlap");
  if (!has_shape(a.dloss, rows)) return invalid("divergence: dloss must be [T]");
  if (is_missing(a.dlogits) || is_missing(a.dloss))
    return invalid("divergence: dlogits and dloss must not be null");
  return {};
}

// Some row of one starts elsewhere between two 16-byte boundaries than the other's.
template <class A, class B>
bool differ_in_alignment(const View<A, 2>& a, const View<B, 2>& b) {
  const auto apart = reinterpret_cast<uintptr_t>(a.data) - reinterpret_cast<uintptr_t>(b.data);
  const int64_t drift = (a.stride[0] - b.stride[0]) * static_cast<int64_t>(sizeof(A));
  return apart % 16 != 0 || (a.shape[0] > 1 && drift % 16 != 0);
}

// Index of the shape to take: the fewest blocks whose parts of a row have at most kPart bytes. It
// depends on the length of a row alone.
template <class T, class CanTake>
size_t shape_of(int64_t columns, const char* name, const CanTake& can_take) {
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(T));
  size_t usual = bytes <= kSmallRow ? 0 : 1;
  while (usual > 0 && usual + 1 < std::size(kShapes.shapes) && can_take(usual + 1) &&
         bytes > kPart * kShapes.shapes[usual].cluster)
    ++usual;
  return chosen_shape<kShapes>(bytes / 16, usual, can_take, name);
}

LaunchConfig config_of(const LaunchShape& shape, int64_t rows, Stream stream) {
  return {.grid = dim3(static_cast<unsigned>(rows * shape.cluster)),
          .block = dim3(static_cast<unsigned>(shape.lanes)),
          .stream = stream};
}

template <class P, LaunchShape kShape>
Status launch_forward(const Forward<P>& a, bool by_elements, Stream stream) {
  constexpr int kThreads = kShape.lanes, kBlocks = kShape.blocks_per_sm;
  LaunchConfig config = config_of(kShape, a.logits.shape[0], stream);
  config.cluster = static_cast<unsigned>(kShape.cluster);
  const auto kernel = by_elements ? forward_kernel<P, 1, kThreads, kBlocks>
                                  : forward_kernel<P, kVec<typename P::Elem>, kThreads, kBlocks>;
  return launch(config, kernel, a, 1.0f / a.temperature);
}

template <class P, LaunchShape kShape>
Status launch_backward(const Backward<P>& a, bool by_elements, Stream stream) {
  constexpr int kThreads = kShape.lanes, kBlocks = kShape.blocks_per_sm;
  const auto kernel = by_elements ? backward_kernel<P, 1, kThreads, kBlocks>
                                  : backward_kernel<P, kVec<typename P::Elem>, kThreads, kBlocks>;
  return launch(config_of(kShape, a.logits.shape[0], stream), kernel, a, 1.0f / a.temperature,
                static_cast<unsigned>(kShape.cluster));
}

bool has_blocks_for(const LaunchShape& shape, int64_t rows) {
  return rows <= INT_MAX / shape.cluster;
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  if (is_missing(a.loss) || !has_shape(a.loss, a.logits.shape[0]))
    return invalid("divergence: loss must be [T]");
  const auto can_take = [&](size_t i) {
    return has_blocks_for(kShapes.shapes[i], a.logits.shape[0]) &&
           has_clusters_for(kShapes.shapes[i]);
  };
  const bool by_elements = differ_in_alignment(a.logits, a.teacher);
  const size_t shape = shape_of<typename P::Elem>(
      a.logits.shape[1], by_elements ? "divergence.forward.elements" : "divergence.forward.vectors",
      can_take);
  return with_shape<kShapes>(shape, [&]<LaunchShape kShape> {
    return launch_forward<P, kShape>(with_limits(a), by_elements, stream);
  });
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  if (const Status s = check_gradients(a); !s.ok()) return s;
  const auto can_take = [&](size_t i) {
    return has_blocks_for(kShapes.shapes[i], a.logits.shape[0]);
  };
  const bool by_elements =
      differ_in_alignment(a.logits, a.teacher) || differ_in_alignment(a.logits, a.dlogits);
  const size_t shape = shape_of<typename P::Elem>(
      a.logits.shape[1],
      by_elements ? "divergence.backward.elements" : "divergence.backward.vectors", can_take);
  return with_shape<kShapes>(shape, [&]<LaunchShape kShape> {
    return launch_backward<P, kShape>(with_limits(a), by_elements, stream);
  });
}

template Status forward<F32>(const Forward<F32>&, Stream);
template Status forward<BF16>(const Forward<BF16>&, Stream);
template Status forward<F16>(const Forward<F16>&, Stream);
template Status backward<F32>(const Backward<F32>&, Stream);
template Status backward<BF16>(const Backward<BF16>&, Stream);
template Status backward<F16>(const Backward<F16>&, Stream);

}  // namespace tigon::divergence
