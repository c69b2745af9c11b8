// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy   loss and gradients of softmax cross entropy over logits = x w^T + b, with
//                        x [T, H] and w [V, H], without ever holding all logits
//
// The loss of linear_head/engine.h: by rows one sweep of loss/rows.cu over a chunk makes the loss
// and, in place, dlogits; by the vocabulary the sweeps of loss/columns.cu.
//
// The device counts the rows that are not ignored: nothing waits for the host.
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <optional>

#include "kernels/linear_head/engine.h"
#include "kernels/linear_head/valid_rows.h"
#include "kernels/loss/columns.h"

namespace tigon::linear_cross_entropy {
namespace {

using linear_head::Chunk;
using linear_head::Head;
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

// The scratch of the loss.
struct LossScratch {
  LossTotals* totals = nullptr;  // [1], where needs_totals()
  // [T] each, where they are reduced.
  float *loss = nullptr, *z_part = nullptr, *accuracy = nullptr, *entropy = nullptr;
  LossState* state = nullptr;  // [T], where the vocabulary is cut
};

template <class Args>
LossScratch take_losses(const Args& a, int64_t rows, ScratchParts* parts) {
  LossScratch s;
  if (needs_totals(a, static_cast<bool>(a.class_weight))) s.totals = parts->take<LossTotals>(1);
  if (a.reduction != Reduction::kNone) {
    const auto take = [&](bool wanted) { return wanted ? parts->take<float>(rows) : nullptr; };
    s.loss = take(true);
    s.z_part = take(static_cast<bool>(a.z_part));
    s.accuracy = take(static_cast<bool>(a.accuracy));
    s.entropy = take(static_cast<bool>(a.entropy));
  }
  if (a.split == Split::kVocabulary) s.state = parts->take<LossState>(rows);
  return s;
}

// A call with its scratch, and on its valid rows alone where their number has a bound.
template <class Args>
struct Work {
  using T = typename Args::Elem;
  Args args;
  Head<T> head;
  std::optional<ValidRows<T>> valid = {};
  LossScratch loss = {};
  linear_head::Plan<T> plan = {};
  size_t bytes = 0;
};

// What belongs to rows, beside x, dx and the targets.
template <class Args, class Rows>
void take_rows(Args* a, Rows* rows, ScratchParts* parts) {
  const bool none = a->reduction == Reduction::kNone;
  rows->take_result(&a->lse, parts);
  for (auto* result : {&a->loss, &a->z_part, &a->accuracy, &a->entropy})
    none ? rows->take_result(result, parts) : rows->take_reduced(*result);
  if constexpr (WritesGradients<Args>)
    if (none) rows->take_input(&a->dloss, parts);
}

// scratch: nullptr where only its size is asked for.
template <class Args>
Work<Args> work_of(const Args& a, void* scratch) {
  Work<Args> w{.args = a, .head = head_of(a)};
  ScratchParts parts(scratch);
  w.valid = linear_head::valid_rows(w.head, a.target, &parts);
  if (w.valid) {
    w.head = w.valid->head();
    w.args.target = w.valid->target();
    take_rows(&w.args, &*w.valid, &parts);
  }
  w.loss = take_losses(a, w.head.x.shape[0], &parts);
  w.plan = linear_head::plan(w.head, &parts);
  w.bytes = parts.bytes();
  return w;
}

template <class Args>
class CrossEntropyPass final : public linear_head::Pass<typename Args::Elem> {
 public:
  using T = typename Args::Elem;
  explicit CrossEntropyPass(const Work<Args>& work) : w_(work) {}

  Status rows(const Chunk<T>& c, Stream stream) const override {
    return loss_rows(rows_of(c), stream);
  }
  Status add(const Chunk<T>& c, bool is_first, Stream stream) const override {
    return add_loss_columns(rows_of(c), w_.loss.state, is_first, stream);
  }
  Status finish(Stream stream) const override {
    return finish_loss(all_rows(), w_.loss.state, stream);
  }
  Status gradient(const Chunk<T>& c, Stream stream) const override {
    return loss_columns_gradient(rows_of(c), stream);
  }

  LossRows<T> all_rows() const { return rows_of(linear_head::all_rows(w_.head)); }

 private:
  // What a sweep over the chunk works on.
  LossRows<T> rows_of(const Chunk<T>& c) const {
    const Args& a = w_.args;
    const bool none = a.reduction == Reduction::kNone;
    const auto at = [&](float* reduced, const View<float, 1>& out) {
      float* const first = none ? out.data : reduced;
      return first != nullptr ? first + c.row : nullptr;
    };
    LossRows<T> rows{
        .pass = w_.head.has_gradients() ? LossPass::kForwardBackward : LossPass::kForward,
        .options = a,
        .rows = c.rows,
        .classes = a.w.shape[0],
        .first_column = c.column,
        .columns = c.columns,
        .logits = c.logits,
        .stride = c.stride,
        .target = a.target.data + c.row,
        .class_weight = a.class_weight.data,
        .totals = w_.loss.totals,
        .loss = at(w_.loss.loss, a.loss),
        .lse = a.lse.data + c.row,
        .z_part = at(w_.loss.z_part, a.z_part),
        .accuracy = at(w_.loss.accuracy, a.accuracy),
        .entropy = at(w_.loss.entropy, a.entropy),
    };
    if constexpr (WritesGradients<Args>)
      if (a.dloss) rows.dloss = a.dloss.data + (none ? c.row : 0);
    return rows;
  }

  const Work<Args>& w_;
};

template <class Args>
Status run_rows(const Work<Args>& w, Stream stream) {
  const Args& a = w.args;
  if (w.loss.totals != nullptr) {
    const Status s = count_rows(a.target.data, w.head.x.shape[0], a, a.class_weight.data,
                                a.w.shape[0], a.normaliser.data, w.loss.totals, stream);
    if (!s.ok()) return s;
  }
  const CrossEntropyPass<Args> pass(w);
  if (const Status s = linear_head::run(w.head, w.plan, pass, stream); !s.ok()) return s;
  if (a.reduction == Reduction::kNone) return {};
  return reduce_results(a, pass.all_rows(), stream);
}

template <class Args>
Status run(const Args& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  const Work<Args> w = work_of(a, a.scratch.data);
  if (a.scratch.bytes < w.bytes || (w.bytes > 0 && a.scratch.data == nullptr))
    return invalid("linear_cross_entropy: scratch is smaller than workspace()");
  if (!w.valid) return run_rows(w, stream);
  if (const Status s = w.valid->gather(a.ignore_index, stream); !s.ok()) return s;
  if (const Status s = run_rows(w, stream); !s.ok()) return s;
  return w.valid->spread(stream);
}

template <class Args>
Status tune_products(const Args& a) {
  if (const Status s = check(a); !s.ok()) return s;
  const Work<Args> w = work_of(a, a.scratch.data);
  return linear_head::tune(w.head, w.plan);
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
  return work_of(a, nullptr).bytes;
}
template <class P>
size_t workspace(const ForwardBackward<P>& a) {
  return work_of(a, nullptr).bytes;
}
template <class P>
Status tune(const Forward<P>& a) {
  return tune_products(a);
}
template <class P>
Status tune(const ForwardBackward<P>& a) {
  return tune_products(a);
}

template Status forward<F32>(const Forward<F32>&, Stream);
template Status forward<BF16>(const Forward<BF16>&, Stream);
template Status forward<F16>(const Forward<F16>&, Stream);
template Status forward_backward<F32>(const ForwardBackward<F32>&, Stream);
template Status forward_backward<BF16>(const ForwardBackward<BF16>&, Stream);
template Status forward_backward<F16>(const ForwardBackward<F16>&, Stream);
template size_t workspace<F32>(const Forward<F32>&);
template size_t workspace<BF16>(const Forward<BF16>&);
template size_t workspace<F16>(const Forward<F16>&);
template size_t workspace<F32>(const ForwardBackward<F32>&);
template size_t workspace<BF16>(const ForwardBackward<BF16>&);
template size_t workspace<F16>(const ForwardBackward<F16>&);
template Status tune<F32>(const Forward<F32>&);
template Status tune<BF16>(const Forward<BF16>&);
template Status tune<F16>(const Forward<F16>&);
template Status tune<F32>(const ForwardBackward<F32>&);
template Status tune<BF16>(const ForwardBackward<BF16>&);
template Status tune<F16>(const ForwardBackward<F16>&);

}  // namespace tigon::linear_cross_entropy
