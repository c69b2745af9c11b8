// SPDX-License-Identifier: Apache-2.0
// divergence   of a student's logits [T, V] from a teacher's, both in memory, and its gradient
//
// Forward: a block or a cluster reads both rows. A KL divergence is a sum about both maxima, found
// in one sweep. jsd needs the log-sum-exps first, and so a second sweep; shared memory keeps what
// it can of both rows. Nothing of the length of a row is written. How a row is shared depends on
// its length alone: its results have the same bits in every batch.
// Backward: both distributions come from the saved log-sum-exps, so nothing is summed, and the
// blocks of a row know nothing of each other. The gradient may take the place of the logits.
//
// Bytes: 2*T*V*elem forward; 3*T*V*elem backward.
#include "kernels/divergence/divergence.h"

#include <algorithm>
#include <climits>

#include "kernels/device/alignment.h"
#include "kernels/device/cluster_exchange.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/held_row.h"
#include "kernels/device/row_parts.h"
#include "kernels/divergence/checks.h"
#include "kernels/divergence/row.h"
#include "kernels/divergence/sums.h"
#include "kernels/divergence/sweep.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/instantiate.h"

namespace tigon::divergence {
namespace {

// Of all passes. `cluster` blocks share a row: in forward they are a cluster, because their sums
// are joined.
constexpr ShapeTable<5> kShapes = {
    .name = "divergence",
    .shapes = {{.lanes = 128, .blocks_per_sm = 6},
               {.lanes = 512, .blocks_per_sm = 2},
               {.lanes = 512, .blocks_per_sm = 2, .cluster = 2},
               {.lanes = 512, .blocks_per_sm = 2, .cluster = 4},
               {.lanes = 512, .blocks_per_sm = 2, .cluster = 8}},
};
// A block's part of a row in bytes, while there are shapes with more blocks. Of two such parts
// shared memory keeps about half; what joins fewer blocks more than makes up for it.
constexpr int64_t kKlPart = 262144, kJsdPart = 102400, kBackwardPart = 65536;
// Bytes of later rows in flight to L2.
constexpr int64_t kBytesAhead = int64_t{4} << 20;
constexpr size_t kStaticShared = 1024;  // upper bound of a block's shared memory beside the rows

template <class Args>
TIGON_DEVICE bool is_ignored(const Args& a, int64_t row) {
  return a.target.data != nullptr && load(a.target.data + row) == a.ignore_index;
}

template <class P>
TIGON_DEVICE void write_row(const Forward<P>& a, int64_t row, float loss, float slope, float lse,
                            float teacher_lse) {
  store(a.loss.data + row, loss);
  store(a.lse.data + row, lse);
  store(a.teacher_lse.data + row, teacher_lse);
  store(a.slope.data + row, slope);
}

template <class P>
TIGON_DEVICE void write_zeros_if(bool writes_row, const Forward<P>& a, int64_t row) {
  if (writes_row) write_row(a, row, 0.0f, 0.0f, 0.0f, 0.0f);
}

// kWidth: 1 where the rows of all tensors do not start equally far from 16-byte boundaries.
// slope: log2(e) / temperature.
template <class P, int kWidth, int kThreads, int kBlocks>
TIGON_KERNEL(kThreads, kBlocks)
kl_kernel(Forward<P> a, float slope) {
  using T = typename P::Elem;
  using Scratch = ExchangeScratch<PairSums, kThreads>;
  TIGON_SHARED(Scratch, scratch, [1]);
  const unsigned blocks = cluster_size(), rank = cluster_rank();
  const int64_t row = blockIdx.x / blocks;
  const int columns = static_cast<int>(a.logits.shape[1]);
  const bool writes_row = rank == 0 && threadIdx.x == 0, reverse = a.kind == Kind::kReverseKl;
  if (is_ignored(a, row)) return write_zeros_if(writes_row, a, row);
  const T* const student = a.logits.data + row * a.logits.stride[0];    // [V]
  const T* const teacher = a.teacher.data + row * a.teacher.stride[0];  // [V]
  const T *const of = reverse ? student : teacher, *const from = reverse ? teacher : student;
  const Slice slice = slice_of<kWidth>(of, columns, rank, blocks);
  begin_exchange(scratch[0]);
  PairSums s;
  for_each<kWidth, kThreads, 3>(of, from, slice, columns, rank,
                                [&](auto& x, auto& y, int) { add<true>(s, x, y, slope); });
  s = cluster_exchange<kThreads>(s, JoinPairSums<true>{slope}, scratch[0]);
  if (!writes_row) return;
  const float log_sum = logf(s.sum), other_log_sum = logf(s.other_sum);
  const float loss = kLn2 * (s.moment / s.sum) - log_sum + other_log_sum;
  const float lse = s.max / a.temperature + log_sum,
              other_lse = s.other_max / a.temperature + other_log_sum;
  write_row(a, row, loss, reverse ? loss : 0.0f, reverse ? lse : other_lse,
            reverse ? other_lse : lse);
}

// kWidth and slope as above. resident: vectors of each row that a block has room for. ahead: the
// row that many rows later is asked to be in L2, while blocks compute and load nothing.
template <class P, int kWidth, int kThreads, int kBlocks>
TIGON_KERNEL(kThreads, kBlocks)
jsd_kernel(Forward<P> a, float slope, int resident, int64_t ahead) {
  using T = typename P::Elem;
  using RowPiece = Piece<T, kWidth>;
  using SumScratch = ExchangeScratch<PairSums, kThreads>;
  using TermScratch = ExchangeScratch<Terms, kThreads>;
  TIGON_DYNAMIC_SHARED(RowPiece, pieces);
  TIGON_SHARED(SumScratch, of_sums, [1]);
  TIGON_SHARED(TermScratch, of_terms, [1]);
  static_assert(sizeof of_sums + sizeof of_terms <= kStaticShared);
  const unsigned blocks = cluster_size(), rank = cluster_rank();
  const int64_t row = blockIdx.x / blocks;
  const int columns = static_cast<int>(a.logits.shape[1]);
  const bool writes_row = rank == 0 && threadIdx.x == 0;
  if (kWidth > 1 && threadIdx.x == 0 && row + ahead < a.logits.shape[0]) {
    prefetch_held(a.logits.data + (row + ahead) * a.logits.stride[0], columns);
    prefetch_held(a.teacher.data + (row + ahead) * a.teacher.stride[0], columns);
  }
  if (is_ignored(a, row)) return write_zeros_if(writes_row, a, row);
  const T* const x = a.logits.data + row * a.logits.stride[0];    // [V]
  const T* const y = a.teacher.data + row * a.teacher.stride[0];  // [V]
  const Slice slice = slice_of<kWidth>(x, columns, rank, blocks);
  const OnChip<T, kWidth> on_chip = {pieces, resident};
  begin_exchange(of_sums[0], of_terms[0]);

  PairSums s;
  first_of_two<kWidth, kThreads>(x, y, slice, columns, rank, on_chip,
                                 [&](auto& f, auto& g, int) { add<false>(s, f, g, slope); });
  s = cluster_exchange<kThreads>(s, JoinPairSums<false>{slope}, of_sums[0]);

  const Pair pair = {slope, fmaf(s.max, slope, fast_log2(s.sum)),
                     fmaf(s.other_max, slope, fast_log2(s.other_sum))};
  Terms terms;
  second_of_two<kWidth, kThreads>(x, y, slice, columns, rank, on_chip,
                                  [&](auto& f, auto& g, int) { add(terms, pair, f, g, a.beta); });
  terms = cluster_exchange<kThreads>(terms, AddTerms{}, of_terms[0]);
  if (!writes_row) return;
  const float lse = s.max / a.temperature + logf(s.sum),
              teacher_lse = s.other_max / a.temperature + logf(s.other_sum);
  // A column's NaN is lost in Mixture.
  const float nan_or_0 = fmaf(0.0f, lse, 0.0f * teacher_lse);
  const float of_student = (1.0f - a.beta) * (kLn2 * terms.student) + nan_or_0;
  write_row(a, row, fmaf(a.beta, kLn2 * terms.teacher, of_student), of_student, lse, teacher_lse);
}

// kWidth as in forward. inverse: 1 / temperature. `blocks` of them share a row.
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
  const Pair pair = {inverse, load(a.lse.data + row), load(a.teacher_lse.data + row)};
  const float scale = load(a.dloss.data + row) * inverse, slope = load(a.slope.data + row);
  const auto write = [&](const auto& gradient) {
    for_each<kWidth, kThreads, 2>(x, y, slice, columns, rank, [&](auto& f, auto& g, int column) {
      write_gradient(dx + column, pair, f, g, gradient);
    });
  };
  if (a.kind == Kind::kForwardKl)
    write(Gradient<Kind::kForwardKl>{scale, slope, a.beta});
  else if (a.kind == Kind::kReverseKl)
    write(Gradient<Kind::kReverseKl>{scale, slope, a.beta});
  else
    write(Gradient<Kind::kJsd>{scale, slope, a.beta});
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

LaunchConfig config_of(const LaunchShape& shape, int64_t rows, Stream stream) {
  return {.grid = dim3(static_cast<unsigned>(rows * shape.cluster)),
          .block = dim3(static_cast<unsigned>(shape.lanes)),
          .stream = stream};
}

// Pieces of each row that a block of this shape keeps.
template <class RowPiece>
size_t resident_pieces(const LaunchShape& shape, int64_t pieces) {
  const size_t room = shared_room(shape.blocks_per_sm, kStaticShared);
  const auto part = static_cast<size_t>(ceil_div(pieces, int64_t{shape.cluster}));
  return std::min(part, room / (2 * sizeof(RowPiece)));
}

template <class P, LaunchShape kShape, int kWidth>
Status launch_forward(const Forward<P>& a, Stream stream) {
  constexpr int kThreads = kShape.lanes, kBlocks = kShape.blocks_per_sm;
  const float slope = kLog2E / a.temperature;
  LaunchConfig config = config_of(kShape, a.logits.shape[0], stream);
  config.cluster = static_cast<unsigned>(kShape.cluster);
  if (a.kind != Kind::kJsd)
    return launch(config, kl_kernel<P, kWidth, kThreads, kBlocks>, a, slope);
  using RowPiece = Piece<typename P::Elem, kWidth>;
  const size_t resident = resident_pieces<RowPiece>(kShape, ceil_div(a.logits.shape[1], kWidth));
  config.shared_bytes = 2 * resident * sizeof(RowPiece);
  return launch(config, jsd_kernel<P, kWidth, kThreads, kBlocks>, a, slope,
                static_cast<int>(resident),
                std::max<int64_t>(kBytesAhead / (2 * row_bytes(a.logits)), 1));
}

template <class P, LaunchShape kShape>
Status launch_backward(const Backward<P>& a, bool by_elements, Stream stream) {
  constexpr int kThreads = kShape.lanes, kBlocks = kShape.blocks_per_sm;
  const auto kernel = by_elements ? backward_kernel<P, 1, kThreads, kBlocks>
                                  : backward_kernel<P, kVec<typename P::Elem>, kThreads, kBlocks>;
  return launch(config_of(kShape, a.logits.shape[0], stream), kernel, a, 1.0f / a.temperature,
                static_cast<unsigned>(kShape.cluster));
}

}  // namespace

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  if (const Status s = check(args); !s.ok()) return s;
  if (is_missing(args.loss) || !has_shape(args.loss, args.logits.shape[0]))
    return invalid("divergence: loss must be [T]");
  const Forward<P> a = with_limits(args);
  const auto can_take = [&](size_t i) {
    return has_blocks_for(kShapes.shapes[i], a.logits.shape[0]) &&
           has_clusters_for(kShapes.shapes[i]);
  };
  const bool by_elements = differ_in_alignment(a.logits, a.teacher), jsd = a.kind == Kind::kJsd;
  const char* const name = jsd ? by_elements ? "divergence.jsd.elements" : "divergence.jsd.vectors"
                           : by_elements ? "divergence.kl.elements"
                                         : "divergence.kl.vectors";
  const size_t shape =
      shape_by_parts<kShapes>(row_bytes(a.logits), jsd ? kJsdPart : kKlPart, name, can_take);
  return with_shape<kShapes>(shape, [&]<LaunchShape kShape> {
    return by_elements ? launch_forward<P, kShape, 1>(a, stream)
                       : launch_forward<P, kShape, kVec<typename P::Elem>>(a, stream);
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
  const size_t shape = shape_by_parts<kShapes>(
      row_bytes(a.logits), kBackwardPart,
      by_elements ? "divergence.backward.elements" : "divergence.backward.vectors", can_take);
  return with_shape<kShapes>(shape, [&]<LaunchShape kShape> {
    return launch_backward<P, kShape>(with_limits(a), by_elements, stream);
  });
}

TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE(backward, Backward);

}  // namespace tigon::divergence
