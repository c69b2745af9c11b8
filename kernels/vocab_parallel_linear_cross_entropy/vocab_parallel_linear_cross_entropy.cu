// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_linear_cross_entropy   loss and gradients of softmax cross entropy over logits
//                                       x w^T + b that are some classes of all, without ever
//                                       holding all of them
//
// The loss of linear_head/engine.h. statistics: the sweep of vocab_parallel_cross_entropy over each
// chunk of rows. backward: the sweep of loss/columns.cu, for which lse is all that a row needs.
#include "kernels/vocab_parallel_linear_cross_entropy/vocab_parallel_linear_cross_entropy.h"

#include "kernels/linear_head/call.h"
#include "kernels/loss/columns.h"
#include "kernels/loss/scratch.h"
#include "kernels/signature/instantiate.h"

namespace tigon::vocab_parallel_linear_cross_entropy {
namespace {

using linear_head::Chunk;
using linear_head::Head;
using linear_head::Plan;

Status check_shard(const Shard& shard, int64_t columns) {
  if (shard.classes > INT_MAX)
    return unsupported(
        "vocab_parallel_linear_cross_entropy: there must be fewer than 2^31 classes");
  if (shard.first_class < 0 || shard.first_class > shard.classes - columns)
    return invalid(
        "vocab_parallel_linear_cross_entropy: first_class must be at least 0, and first_class + V "
        "at most classes, the number of classes of all ranks");
  return {};
}

template <class Args>
Status check_layer(const Args& a) {
  if (const Status s = linear_head::check(linear_head::head_of(a)); !s.ok()) return s;
  if (a.x.shape[0] > INT_MAX)
    return unsupported("vocab_parallel_linear_cross_entropy: there must be fewer than 2^31 rows");
  if (a.max_valid_rows >= 0)
    return unsupported("vocab_parallel_linear_cross_entropy: there is no bound on valid rows");
  if (const Status s = check_shard(a, a.w.shape[0]); !s.ok()) return s;
  if (!has_shape(a.target, a.x.shape[0]) || is_missing(a.target))
    return invalid("vocab_parallel_linear_cross_entropy: target must be [T] and not null");
  if (a.class_weight && !has_shape(a.class_weight, a.classes))
    return invalid("vocab_parallel_linear_cross_entropy: class_weight must be [classes]");
  if (!(a.label_smoothing >= 0.0f && a.label_smoothing <= 1.0f))
    return invalid("vocab_parallel_linear_cross_entropy: label_smoothing must be in [0, 1]");
  return {};
}

template <class P>
Status check(const Statistics<P>& a) {
  if (const Status s = check_layer(a); !s.ok()) return s;
  if (a.split != linear_head::Split::kRows)
    return unsupported(
        "vocab_parallel_linear_cross_entropy: statistics are of whole rows; split must be rows");
  const int64_t rows = a.x.shape[0];
  if (!has_shape(a.statistics, rows, kStatistics) || !a.statistics.contiguous() ||
      is_missing(a.statistics))
    return invalid("vocab_parallel_linear_cross_entropy: statistics must be [T, 3] and not null");
  if (a.further && (!has_shape(a.further, rows, kFurtherStatistics) || !a.further.contiguous()))
    return invalid("vocab_parallel_linear_cross_entropy: further must be [T, 4]");
  if (!a.further && a.label_smoothing != 0.0f && rows > 0)
    return invalid("vocab_parallel_linear_cross_entropy: label_smoothing needs further statistics");
  return {};
}

template <class P>
Status check(const Backward<P>& a) {
  if (const Status s = check_layer(a); !s.ok()) return s;
  const int64_t rows = a.x.shape[0], losses = a.reduction == Reduction::kNone ? rows : 1;
  if (!has_shape(a.lse, rows) || is_missing(a.lse))
    return invalid("vocab_parallel_linear_cross_entropy: lse must be [T] and not null");
  if (a.dloss && !has_shape(a.dloss, losses))
    return invalid(
        "vocab_parallel_linear_cross_entropy: dloss must be [T] with reduction none, else [1]");
  if (a.normaliser && !has_shape(a.normaliser, 1))
    return invalid("vocab_parallel_linear_cross_entropy: normaliser must be [1]");
  return {};
}

// With what counts rows, of backward.
template <class Args>
using Call = linear_head::Call<Args, LossScratch>;

template <class Args>
Call<Args> call_of(const Args& a, void* memory) {
  constexpr bool kKnowsRows = linear_head::WritesGradients<Args>;
  const auto no_rows = [](Args*, auto*, ScratchParts*) {};  // a bound on them is refused
  const auto state = [](const Args& args, int64_t rows, ScratchParts* parts) {
    if constexpr (kKnowsRows) return take_loss_scratch(args, rows, parts);
    return LossScratch{};
  };
  return linear_head::make_call<LossScratch>(a, kKnowsRows, memory, no_rows, state);
}

template <class P>
class StatisticsPass final : public linear_head::Pass<typename P::Elem> {
 public:
  using T = typename P::Elem;
  explicit StatisticsPass(const Statistics<P>& args) : args_(args) {}

  Status rows(const Chunk<T>& c, Stream stream) const override {
    vocab_parallel_cross_entropy::Statistics<P> s;
    static_cast<Shard&>(s) = args_;
    s.logits = view<const T>(c.logits, c.rows, c.columns);
    s.logits.stride[0] = c.stride;
    s.target = view(args_.target.data + c.row, c.rows);
    s.statistics = of_rows(args_.statistics, c);
    if (args_.further) s.further = of_rows(args_.further, c);
    s.class_weight = args_.class_weight;
    s.ignore_index = args_.ignore_index;
    s.label_smoothing = args_.label_smoothing;
    s.softcap = args_.softcap;
    return vocab_parallel_cross_entropy::statistics(s, stream);
  }

 private:
  static View<float, 2> of_rows(const View<float, 2>& all, const Chunk<T>& c) {
    return view(all.data + c.row * all.stride[0], c.rows, all.shape[1]);
  }
  const Statistics<P>& args_;
};

template <class P>
class GradientPass final : public linear_head::Pass<typename P::Elem> {
 public:
  using T = typename P::Elem;
  GradientPass(const Call<Backward<P>>& call, const RowsDone& rows_done)
      : call_(call), rows_done_(rows_done) {}

  Status gradient(const Chunk<T>& c, Stream stream) const override {
    const Backward<P>& a = call_.args;
    const bool none = a.reduction == Reduction::kNone;
    return loss_columns_gradient<T>({.pass = LossPass::kBackward,
                                     .options = a,
                                     .rows = c.rows,
                                     .classes = a.classes,
                                     .first_column = a.first_class + c.column,
                                     .columns = c.columns,
                                     .logits = c.logits,
                                     .stride = c.stride,
                                     .target = a.target.data + c.row,
                                     .class_weight = a.class_weight.data,
                                     .totals = call_.state.totals,
                                     .dloss = a.dloss ? a.dloss.data + (none ? c.row : 0) : nullptr,
                                     .lse = const_cast<float*>(a.lse.data) + c.row},  // not written
                                    stream);
  }

  Status used(const Chunk<T>& c, Stream) const override {
    const bool tells = rows_done_ && call_.args.split == linear_head::Split::kRows;
    return tells ? rows_done_(c.row + c.rows) : Status{};
  }

 private:
  const Call<Backward<P>>& call_;
  const RowsDone& rows_done_;
};

template <class Args>
Status tune_products(const Args& a) {
  if (const Status s = check(a); !s.ok()) return s;
  const Call<Args> call = call_of(a, a.scratch.data);
  return linear_head::tune(call.head, call.plan);
}

}  // namespace

template <class P>
Status statistics(const Statistics<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  return linear_head::run_call(
      call_of(a, a.scratch.data), stream, [](const Call<Statistics<P>>& call, Stream on) {
        return linear_head::run_pass(call, StatisticsPass<P>(call.args), on);
      });
}

template <class P>
Status backward(const Backward<P>& a, const RowsDone& rows_done, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  return linear_head::run_call(
      call_of(a, a.scratch.data), stream, [&](const Call<Backward<P>>& call, Stream on) {
        if (!call.head.has_gradients()) return Status{};
        const Status s = count_rows(call.args, call.args.classes, call.state, on);
        return s.ok() ? linear_head::run_pass(call, GradientPass<P>(call, rows_done), on) : s;
      });
}
template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  return backward(a, RowsDone(), stream);
}

template <class P>
size_t workspace(const Statistics<P>& a) {
  return call_of(a, nullptr).bytes;
}
template <class P>
size_t workspace(const Backward<P>& a) {
  return call_of(a, nullptr).bytes;
}
template <class P>
Status tune(const Statistics<P>& a) {
  return tune_products(a);
}
template <class P>
Status tune(const Backward<P>& a) {
  return tune_products(a);
}

TIGON_INSTANTIATE(statistics, Statistics);
TIGON_INSTANTIATE(backward, Backward);
template Status backward<F32>(const Backward<F32>&, const RowsDone&, Stream);
template Status backward<BF16>(const Backward<BF16>&, const RowsDone&, Stream);
template Status backward<F16>(const Backward<F16>&, const RowsDone&, Stream);
TIGON_INSTANTIATE_WORKSPACE(Statistics);
TIGON_INSTANTIATE_WORKSPACE(Backward);
TIGON_INSTANTIATE_TUNE(Statistics);
TIGON_INSTANTIATE_TUNE(Backward);

}  // namespace tigon::vocab_parallel_linear_cross_entropy
