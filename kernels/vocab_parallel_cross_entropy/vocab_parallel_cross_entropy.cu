// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_cross_entropy   loss and gradient of softmax cross entropy over logits [T, V] that
//                                are some classes of all
//
// statistics: a block sweeps over a row once. join: a thread joins the statistics of all ranks
// of a row, in their order, and makes the loss of them; the losses are added as in cross_entropy.
// backward: the sweep of loss/columns.cu, for which lse is all that a row needs.
//
// Bytes: T*V*elem for the statistics, 2*T*V*elem for the gradient in place.
#include "kernels/vocab_parallel_cross_entropy/vocab_parallel_cross_entropy.h"

#include <climits>

#include "kernels/device/launch_table.h"
#include "kernels/loss/columns.h"
#include "kernels/loss/row.h"
#include "kernels/loss/scratch.h"
#include "kernels/loss/sweep.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/instantiate.h"

namespace tigon::vocab_parallel_cross_entropy {

// Where the statistics of a row are, of one rank.
template <class Float>
struct RowStatistics {
  Float *few, *further;
};

namespace {

// Of a row's statistics: a warp where that is one batch of its loads, else a block, whose threads
// have a few vectors each.
constexpr ShapeTable<2> kShapes = {
    "vocab_parallel_statistics",
    {{.lanes = 32, .blocks_per_sm = 32}, {.lanes = 256, .blocks_per_sm = 4}}};
constexpr int kThreads = 256;  // a row each

template <class Float>
TIGON_DEVICE RowStatistics<Float> at_row(const RowStatistics<Float>& first, int64_t row) {
  return {first.few + row * kStatistics, first.further + row * kFurtherStatistics};
}

template <LossForm kForm>
TIGON_DEVICE void store_statistics(const RowStatistics<float>& to,
                                   const tigon::Statistics<kForm>& s, float target, bool is_hit) {
  store(to.few + kMax, s.exp.max);
  store(to.few + kSum, s.exp.sum);
  store(to.few + kTarget, target);
  if constexpr (kForm == LossForm::kGeneral) {
    store(to.further + kLogits, s.sum);
    store(to.further + kMoment, s.moment);
    store(to.further + kLargest, s.largest);
    store(to.further + kHit, is_hit ? 1.0f : s.first == INT_MAX ? -1.0f : 0.0f);
  }
}

template <class T, int kBlock, int kBlocksPerSm, LossForm kForm>
TIGON_KERNEL(kBlock, kBlocksPerSm)
statistics_kernel(LossRows<T> a, RowStatistics<float> statistics) {
  TIGON_DYNAMIC_SHARED(Vec<T>, on_chip);  // of no size
  const int64_t row = blockIdx.x;
  const int64_t target = load(a.target + row), held = target - a.first_column;
  const bool ignored = is_ignored(target, a.options);
  const int columns = ignored ? 0 : static_cast<int>(a.columns);
  const T* const x = a.logits + row * a.stride;
  const AddLogits<kForm> add = {{a.options.softcap, 1.0f / a.options.softcap},
                                smoothing_weights(a),
                                static_cast<int>(a.first_column)};
  tigon::Statistics<kForm> s;
  if (columns > 0)
    s = read_row<kBlock>(x, slice_of<kVec<T>>(x, columns, 0, 1), columns, 0, on_chip, 0, add);
  s = block_reduce<kBlock>(s, JoinStatistics<kForm>{});
  if (threadIdx.x != 0) return;
  const bool is_held = target >= 0 && held >= 0 && held < columns;
  const float x_y = is_held ? to_float(load(x + held)) : -INFINITY;
  bool is_hit = false;
  if constexpr (kForm == LossForm::kGeneral) is_hit = is_held && s.first == target;
  store_statistics(at_row(statistics, row), s, x_y, is_hit);
}

// The statistics of a row of one rank. As `first` it has the rank, because ranks come in the order
// of their classes. One of which no class is first must not come before another whose largest logit
// is -inf, too.
template <LossForm kForm>
TIGON_DEVICE tigon::Statistics<kForm> load_statistics(const RowStatistics<const float>& from,
                                                      int rank) {
  tigon::Statistics<kForm> s;
  s.exp.max = load(from.few + kMax);
  s.exp.sum = load(from.few + kSum);
  if constexpr (kForm == LossForm::kGeneral) {
    s.sum = load(from.further + kLogits);
    s.moment = load(from.further + kMoment);
    s.largest = load(from.further + kLargest);
    if (load(from.further + kHit) >= 0.0f) s.first = rank;
  }
  return s;
}

template <LossForm kForm>
TIGON_KERNEL(kThreads)
join_kernel(LossRows<float> a, RowStatistics<const float> statistics, int ranks) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= a.rows) return;
  const int64_t target = load(a.target + row);
  if (is_ignored(target, a.options)) return write_ignored_row<kForm>(a, row);
  const auto of_rank = [&](int rank) { return at_row(statistics, rank * a.rows + row); };
  tigon::Statistics<kForm> s;
  float x_y = -INFINITY;
  for (int rank = 0; rank < ranks; ++rank) {
    const RowStatistics<const float> from = of_rank(rank);
    s = JoinStatistics<kForm>{}(s, load_statistics<kForm>(from, rank));
    x_y = fmaxf(x_y, load(from.few + kTarget));
  }
  const int y = target >= 0 && target < a.classes ? static_cast<int>(target) : -1;
  if constexpr (kForm == LossForm::kGeneral) {
    const bool is_hit = s.first < ranks && load(of_rank(s.first).further + kHit) > 0.0f;
    s.first = is_hit ? y : INT_MAX;
  }
  const Softcap<kForm> softcap = {a.options.softcap, 1.0f / a.options.softcap};
  write_row<kForm>(a, row, s, s.exp.max + logf(s.exp.sum), y, y >= 0 ? softcap(x_y) : NAN);
}

Status check_classes(int64_t classes) {
  if (classes < 1)
    return invalid(
        "vocab_parallel_cross_entropy: classes must be the number of classes of all ranks, at "
        "least 1");
  if (classes > INT_MAX)
    return unsupported("vocab_parallel_cross_entropy: there must be fewer than 2^31 classes");
  return {};
}

Status check_rows(int64_t rows) {
  if (rows < 0) return invalid("vocab_parallel_cross_entropy: T must not be negative");
  if (rows > INT_MAX)
    return unsupported("vocab_parallel_cross_entropy: there must be fewer than 2^31 rows");
  return {};
}

// A rank's logits, which of all classes they are, and the targets.
template <class Args>
Status check_logits(const Args& a) {
  const int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (const Status s = check_rows(rows); !s.ok()) return s;
  if (const Status s = check_classes(a.classes); !s.ok()) return s;
  if (columns < 0 || !has_shape(a.logits, rows, columns) ||
      (rows > 1 && a.logits.stride[0] < columns))
    return invalid(
        "vocab_parallel_cross_entropy: rows of logits must be contiguous and must not overlap");
  if (a.first_class < 0 || a.first_class > a.classes - columns)
    return invalid(
        "vocab_parallel_cross_entropy: first_class must be at least 0, and first_class + V at most "
        "classes");
  if (!has_shape(a.target, rows))
    return invalid("vocab_parallel_cross_entropy: target must be [T]");
  if (is_missing(a.logits) || is_missing(a.target))
    return invalid("vocab_parallel_cross_entropy: logits and target must not be null");
  return {};
}

template <class Args>
Status check_options(const Args& a) {
  if (a.class_weight && !has_shape(a.class_weight, a.classes))
    return invalid("vocab_parallel_cross_entropy: class_weight must be [classes]");
  if (!(a.label_smoothing >= 0.0f && a.label_smoothing <= 1.0f))
    return invalid("vocab_parallel_cross_entropy: label_smoothing must be in [0, 1]");
  if constexpr (requires { a.normaliser; })
    if (a.normaliser && !has_shape(a.normaliser, 1))
      return invalid("vocab_parallel_cross_entropy: normaliser must be [1]");
  return {};
}

template <class P>
Status check(const Statistics<P>& a) {
  const int64_t rows = a.logits.shape[0];
  if (const Status s = check_logits(a); !s.ok()) return s;
  if (const Status s = check_options(a); !s.ok()) return s;
  if (!has_shape(a.statistics, rows, kStatistics) || !a.statistics.contiguous() ||
      is_missing(a.statistics))
    return invalid("vocab_parallel_cross_entropy: statistics must be [T, 3] and not null");
  if (a.further && (!has_shape(a.further, rows, kFurtherStatistics) || !a.further.contiguous()))
    return invalid("vocab_parallel_cross_entropy: further must be [T, 4]");
  if (!a.further && a.label_smoothing != 0.0f && rows > 0)
    return invalid("vocab_parallel_cross_entropy: label_smoothing needs further statistics");
  return {};
}

template <class Args>
int64_t losses_of(const Args& a) {
  return a.reduction == Reduction::kNone ? a.target.shape[0] : 1;
}

template <class P>
Status check_statistics(const Join<P>& a) {
  const int64_t ranks = a.statistics.shape[0], rows = a.target.shape[0];
  if (ranks < 1 || ranks > INT_MAX || !has_shape(a.statistics, ranks, rows, kStatistics) ||
      !a.statistics.contiguous())
    return invalid("vocab_parallel_cross_entropy: statistics must be [R >= 1, T, 3]");
  if (a.further &&
      (!has_shape(a.further, ranks, rows, kFurtherStatistics) || !a.further.contiguous()))
    return invalid("vocab_parallel_cross_entropy: further must be [R, T, 4]");
  const bool needs_further =
      a.label_smoothing != 0.0f || a.class_weight || a.z_part || a.accuracy || a.entropy;
  if (needs_further && !a.further && rows > 0)
    return invalid(
        "vocab_parallel_cross_entropy: label_smoothing, class_weight, z_part, accuracy and entropy "
        "need further statistics");
  return {};
}

template <class P>
Status check(const Join<P>& a) {
  const int64_t rows = a.target.shape[0];
  if (const Status s = check_rows(rows); !s.ok()) return s;
  if (const Status s = check_classes(a.classes); !s.ok()) return s;
  if (const Status s = check_options(a); !s.ok()) return s;
  if (const Status s = check_statistics(a); !s.ok()) return s;
  if (!has_shape(a.lse, rows)) return invalid("vocab_parallel_cross_entropy: lse must be [T]");
  if (!has_shape(a.loss, losses_of(a)))
    return invalid("vocab_parallel_cross_entropy: loss must be [T] with reduction none, else [1]");
  if (is_missing(a.statistics) || is_missing(a.target) || is_missing(a.lse) || is_missing(a.loss))
    return invalid(
        "vocab_parallel_cross_entropy: statistics, target, loss and lse must not be null");
  for (const auto* result : {&a.z_part, &a.accuracy, &a.entropy})
    if (*result && !has_shape(*result, losses_of(a)))
      return invalid(
          "vocab_parallel_cross_entropy: z_part, accuracy and entropy must be [T] with reduction "
          "none, else [1]");
  return {};
}

template <class P>
Status check(const Backward<P>& a) {
  if (const Status s = check_logits(a); !s.ok()) return s;
  if (const Status s = check_options(a); !s.ok()) return s;
  if (!has_shape(a.lse, a.logits.shape[0]) || is_missing(a.lse))
    return invalid("vocab_parallel_cross_entropy: lse must be [T] and not null");
  if (a.dloss && !has_shape(a.dloss, losses_of(a)))
    return invalid("vocab_parallel_cross_entropy: dloss must be [T] with reduction none, else [1]");
  return {};
}

struct Layout {
  LossScratch loss;
  size_t bytes;
};

template <class Args>
Layout layout(const Args& a, void* data) {
  ScratchParts parts(data);
  const LossScratch loss = take_loss_scratch(a, a.target.shape[0], &parts);
  return {loss, parts.bytes()};
}

template <class Args>
Status check_scratch(const Args& a, const Layout& l) {
  if (a.scratch.bytes < l.bytes || (l.bytes > 0 && a.scratch.data == nullptr))
    return invalid("vocab_parallel_cross_entropy: scratch is smaller than workspace()");
  return {};
}

// A rank's logits.
template <class Args>
LossRows<typename Args::Elem> rows_of(const Args& a, const LossOptions& options) {
  using T = typename Args::Elem;
  return {.options = options,
          .rows = a.logits.shape[0],
          .classes = a.classes,
          .first_column = a.first_class,
          .columns = a.logits.shape[1],
          .logits = const_cast<T*>(a.logits.data),  // statistics' are const, and not written
          .stride = a.logits.stride[0],
          .target = a.target.data,
          .class_weight = a.class_weight.data};
}

// Returns run.operator()<form>() of the form that these statistics are of.
template <class Run>
Status with_form(bool has_further, float softcap, const Run& run) {
  if (has_further) return run.template operator()<LossForm::kGeneral>();
  return softcap > 0.0f ? run.template operator()<LossForm::kSoftcap>()
                        : run.template operator()<LossForm::kPlain>();
}

}  // namespace

template <class P>
Status statistics(const Statistics<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  const auto rows = rows_of(
      a,
      {.ignore_index = a.ignore_index, .label_smoothing = a.label_smoothing, .softcap = a.softcap});
  const RowStatistics<float> out = {a.statistics.data, a.further.data};
  const int64_t vectors = ceil_div(rows.columns, int64_t{kVec<typename P::Elem>});
  const auto any = [](size_t) { return true; };
  const size_t shape =
      chosen_shape<kShapes>(vectors, vectors <= kShapes.shapes[0].lanes * kBatch ? 0 : 1, any);
  return with_form(static_cast<bool>(a.further), a.softcap, [&]<LossForm kForm>() {
    return with_shape<kShapes>(shape, [&]<LaunchShape kShape> {
      return launch({.grid = dim3(static_cast<unsigned>(rows.rows)),
                     .block = dim3(kShape.lanes),
                     .stream = stream},
                    statistics_kernel<typename P::Elem, kShape.lanes, kShape.blocks_per_sm, kForm>,
                    rows, out);
    });
  });
}

template <class P>
Status join(const Join<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  const Layout l = layout(a, a.scratch.data);
  if (const Status s = check_scratch(a, l); !s.ok()) return s;
  if (const Status s = count_rows(a, a.classes, l.loss, stream); !s.ok()) return s;
  LossRows<float> rows{.options = a,
                       .rows = a.target.shape[0],
                       .classes = a.classes,
                       .target = a.target.data,
                       .class_weight = a.class_weight.data,
                       .totals = l.loss.totals,
                       .lse = a.lse.data};
  write_results_to(a, l.loss, 0, &rows);
  const auto blocks = static_cast<unsigned>(ceil_div(rows.rows, int64_t{kThreads}));
  const auto ranks = static_cast<int>(a.statistics.shape[0]);
  const RowStatistics<const float> from = {a.statistics.data, a.further.data};
  const auto run = [&]<LossForm kForm>() {
    return launch({.grid = dim3(blocks), .block = dim3(kThreads), .stream = stream},
                  join_kernel<kForm>, rows, from, ranks);
  };
  const Status joined = with_form(static_cast<bool>(a.further), a.softcap, run);
  if (!joined.ok() || a.reduction == Reduction::kNone) return joined;
  return reduce_results(a, rows, stream);
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  const Layout l = layout(a, a.scratch.data);
  if (const Status s = check_scratch(a, l); !s.ok()) return s;
  if (const Status s = count_rows(a, a.classes, l.loss, stream); !s.ok()) return s;
  auto rows = rows_of(a, a);
  rows.pass = LossPass::kBackward;
  rows.totals = l.loss.totals;
  rows.dloss = a.dloss.data;
  rows.lse = const_cast<float*>(a.lse.data);  // not written
  return rows.columns > 0 ? loss_columns_gradient(rows, stream) : Status{};
}

template <class P>
size_t workspace(const Join<P>& a) {
  return layout(a, nullptr).bytes;
}
template <class P>
size_t workspace(const Backward<P>& a) {
  return layout(a, nullptr).bytes;
}

TIGON_INSTANTIATE(statistics, Statistics);
TIGON_INSTANTIATE(join, Join);
TIGON_INSTANTIATE(backward, Backward);
TIGON_INSTANTIATE_WORKSPACE(Join);
TIGON_INSTANTIATE_WORKSPACE(Backward);

}  // namespace tigon::vocab_parallel_cross_entropy
