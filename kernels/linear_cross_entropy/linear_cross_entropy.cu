// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy   loss and gradients of softmax cross entropy over logits = x w^T + b, with
//                        x [T, H] and w [V, H], without ever holding all logits
//
// The loss of linear_head/engine.h: by rows one sweep of loss/rows.cu over a chunk makes the loss
// and, in place, dlogits; by the vocabulary the sweeps of loss/columns.cu.
//
// The device counts the rows that are not ignored: nothing waits for the host.
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include "kernels/linear_head/call.h"
#include "kernels/loss/columns.h"
#include "kernels/loss/scratch.h"
#include "kernels/signature/instantiate.h"

namespace tigon::linear_cross_entropy {
namespace {

using linear_head::Chunk;
using linear_head::ValidRows;
using linear_head::WritesGradients;

// The loss, its results and the vectors over classes.
template <class Args>
Status check_loss(const Args& a, int64_t losses) {
  const int64_t columns = a.w.shape[0];
  if (!has_shape(a.loss, losses) || is_missing(a.loss))
    return invalid("linear_cross_entropy: loss must be [T] with reduction none, else [1]");
  for (const auto* result : {&a.z_part, &a.accuracy, &a.entropy})
    if (*result && !has_shape(*result, losses))
      return invalid(
          "linear_cross_entropy: z_part, accuracy and entropy must be [T] with reduction none, "
          "else [1]");
  if (a.class_weight && !has_shape(a.class_weight, columns))
    return invalid("linear_cross_entropy: class_weight must be [V]");
  if (a.normaliser && !has_shape(a.normaliser, 1))
    return invalid("linear_cross_entropy: normaliser must be [1]");
  if (!(a.label_smoothing >= 0.0f && a.label_smoothing <= 1.0f))
    return invalid("linear_cross_entropy: label_smoothing must be in [0, 1]");
  return {};
}

template <class Args>
Status check(const Args& a) {
  if (const Status s = linear_head::check(head_of(a)); !s.ok()) return s;
  const int64_t rows = a.x.shape[0], losses = a.reduction == Reduction::kNone ? rows : 1;
  if (!has_shape(a.target, rows) || !has_shape(a.lse, rows))
    return invalid("linear_cross_entropy: target and lse must be [T]");
  if (is_missing(a.target) || is_missing(a.lse))
    return invalid("linear_cross_entropy: target and lse must not be null");
  if (const Status s = check_loss(a, losses); !s.ok()) return s;
  if constexpr (WritesGradients<Args>)
    if (a.dloss && !has_shape(a.dloss, losses))
      return invalid("linear_cross_entropy: dloss must be [T] with reduction none, else [1]");
  return {};
}

struct State {
  LossScratch loss;
  LossState* columns;  // [T], where the vocabulary is cut
};

template <class Args>
State take_state(const Args& a, int64_t rows, ScratchParts* parts) {
  const LossScratch loss = take_loss_scratch(a, rows, parts);
  return {loss, a.split == Split::kVocabulary ? parts->take<LossState>(rows) : nullptr};
}

template <class Args>
void take_rows(Args* a, ValidRows<typename Args::Elem>* rows, ScratchParts* parts) {
  const bool none = a->reduction == Reduction::kNone;
  rows->take_result(&a->lse, parts);
  for (auto* result : {&a->loss, &a->z_part, &a->accuracy, &a->entropy})
    none ? rows->take_result(result, parts) : rows->take_reduced(*result);
  if constexpr (WritesGradients<Args>)
    if (none) rows->take_input(&a->dloss, parts);
}

template <class Args>
using Call = linear_head::Call<Args, State>;

template <class Args>
Call<Args> call_of(const Args& a, void* scratch) {
  return linear_head::make_call<State>(a, false, scratch, take_rows<Args>, take_state<Args>);
}

template <class Args>
class CrossEntropyPass final : public linear_head::Pass<typename Args::Elem> {
 public:
  using T = typename Args::Elem;
  explicit CrossEntropyPass(const Call<Args>& call) : call_(call) {}

  Status rows(const Chunk<T>& c, Stream stream) const override {
    return loss_rows(rows_of(c), stream);
  }
  Status add(const Chunk<T>& c, bool is_first, Stream stream) const override {
    return add_loss_columns(rows_of(c), call_.state.columns, is_first, stream);
  }
  Status finish(Stream stream) const override {
    return finish_loss(all_rows(), call_.state.columns, stream);
  }
  Status gradient(const Chunk<T>& c, Stream stream) const override {
    return loss_columns_gradient(rows_of(c), stream);
  }

  LossRows<T> all_rows() const { return rows_of(linear_head::all_rows(call_.head)); }

 private:
  // What a sweep over the chunk works on.
  LossRows<T> rows_of(const Chunk<T>& c) const {
    const Args& a = call_.args;
    LossRows<T> rows{
        .pass = call_.head.has_gradients() ? LossPass::kForwardBackward : LossPass::kForward,
        .options = a,
        .rows = c.rows,
        .classes = a.w.shape[0],
        .first_column = c.column,
        .columns = c.columns,
        .logits = c.logits,
        .stride = c.stride,
        .target = a.target.data + c.row,
        .class_weight = a.class_weight.data,
        .totals = call_.state.loss.totals,
        .lse = a.lse.data + c.row,
    };
    write_results_to(a, call_.state.loss, c.row, &rows);
    if constexpr (WritesGradients<Args>) {
      const bool none = a.reduction == Reduction::kNone;
      if (a.dloss) rows.dloss = a.dloss.data + (none ? c.row : 0);
    }
    return rows;
  }

  const Call<Args>& call_;
};

template <class Args>
Status run_loss(const Call<Args>& call, Stream stream) {
  const Args& a = call.args;
  if (const Status s = count_rows(a, a.w.shape[0], call.state.loss, stream); !s.ok()) return s;
  const CrossEntropyPass<Args> pass(call);
  if (const Status s = linear_head::run(call.head, call.plan, pass, stream); !s.ok()) return s;
  if (a.reduction == Reduction::kNone) return {};
  return reduce_results(a, pass.all_rows(), stream);
}

template <class Args>
Status run(const Args& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  return linear_head::run_call(call_of(a, a.scratch.data), stream, run_loss<Args>);
}

template <class Args>
Status tune_products(const Args& a) {
  if (const Status s = check(a); !s.ok()) return s;
  const Call<Args> call = call_of(a, a.scratch.data);
  return linear_head::tune(call.head, call.plan);
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  return run(a, stream);
}
template <class P>
Status forward_backward(const ForwardBackward<P>& a, Stream stream) {
  return run(a, stream);
}
template <class P>
size_t workspace(const Forward<P>& a) {
  return call_of(a, nullptr).bytes;
}
template <class P>
size_t workspace(const ForwardBackward<P>& a) {
  return call_of(a, nullptr).bytes;
}
template <class P>
Status tune(const Forward<P>& a) {
  return tune_products(a);
}
template <class P>
Status tune(const ForwardBackward<P>& a) {
  return tune_products(a);
}

TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE(forward_backward, ForwardBackward);
TIGON_INSTANTIATE_WORKSPACE(Forward);
TIGON_INSTANTIATE_WORKSPACE(ForwardBackward);
TIGON_INSTANTIATE_TUNE(Forward);
TIGON_INSTANTIATE_TUNE(ForwardBackward);

}  // namespace tigon::linear_cross_entropy
