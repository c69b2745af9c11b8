// SPDX-License-Identifier: Apache-2.0
// linear_divergence   divergence of logits x w^T + b from those of a teacher, with x [T, H],
//                     w [V, H], teacher_x [T, G] and teacher_w [V, G], and its gradient, without
//                     ever holding all logits
//
// The loss of linear_head/engine.h, with a second layer: for each chunk of the student's logits the
// same rows and columns of the teacher's are computed beside them, and the kernels of divergence
// sweep over both. The gradient is written over the student's logits.
//
// Bytes beside those of the products: 2*T*V*elem forward, 3*T*V*elem backward.
#include "kernels/linear_divergence/linear_divergence.h"

#include "kernels/divergence/checks.h"
#include "kernels/linear_head/call.h"
#include "kernels/signature/instantiate.h"

namespace tigon::linear_divergence {
namespace {

using linear_head::Chunk;
using linear_head::Head;
using linear_head::Plan;
using linear_head::rows_of;
using linear_head::ValidRows;
using linear_head::WritesGradients;

template <class Args>
Head<typename Args::Elem> teacher_of(const Args& a) {
  Head<typename Args::Elem> head;
  static_cast<ChunkOptions&>(head) = a;
  head.x = linear_head::with_usual_stride(a.teacher_x);
  head.w = linear_head::with_usual_stride(a.teacher_w);
  head.bias = a.teacher_bias;
  head.knows_rows = WritesGradients<Args>;
  return head;
}

template <class Args>
Status check_layers(const Args& a) {
  if (const Status s = linear_head::check(head_of(a)); !s.ok()) return s;
  const int64_t rows = a.x.shape[0], columns = a.w.shape[0], width = a.teacher_x.shape[1];
  if (width < 1 || !linear_head::is_matrix(a.teacher_x, rows, width) ||
      !linear_head::is_matrix(a.teacher_w, columns, width))
    return invalid("linear_divergence: teacher_x must be [T, G >= 1] and teacher_w [V, G]");
  if (is_missing(a.teacher_x) || is_missing(a.teacher_w))
    return invalid("linear_divergence: teacher_x and teacher_w must not be null");
  if (a.teacher_bias && !has_shape(a.teacher_bias, columns))
    return invalid("linear_divergence: teacher_bias must be [V]");
  if (rows > INT_MAX) return unsupported("linear_divergence: there must be fewer than 2^31 rows");
  return width > INT_MAX ? unsupported("linear_divergence: G must be below 2^31") : Status{};
}

template <class Args>
Status check(const Args& a) {
  if (const Status s = check_layers(a); !s.ok()) return s;
  const int64_t rows = a.x.shape[0];
  const auto is_of_rows = [rows](const auto& v) { return !is_missing(v) && has_shape(v, rows); };
  if (!is_of_rows(a.target)) return invalid("linear_divergence: target must be [T]");
  if (!is_of_rows(a.lse) || !is_of_rows(a.teacher_lse) || !is_of_rows(a.slope))
    return invalid("linear_divergence: lse, teacher_lse and slope must be [T]");
  if constexpr (WritesGradients<Args>) {
    if (!is_of_rows(a.dloss)) return invalid("linear_divergence: dloss must be [T]");
  } else {
    if (!is_of_rows(a.loss)) return invalid("linear_divergence: loss must be [T]");
  }
  return divergence::check_options(a);
}

// The teacher's layer, cut as the student's is.
template <class T>
struct TeacherLayer {
  Head<T> head = {};
  std::optional<ValidRows<T>> valid = {};
  Plan<T> plan = {};
};

template <class Args>
TeacherLayer<typename Args::Elem> take_teacher(const Args& a, int64_t, ScratchParts* parts) {
  TeacherLayer<typename Args::Elem> teacher{.head = teacher_of(a)};
  if (!linear_head::can_be_planned(teacher.head)) return teacher;
  teacher.valid = linear_head::valid_rows(teacher.head, a.target, parts);
  if (teacher.valid) teacher.head = teacher.valid->head();
  teacher.plan = linear_head::plan(teacher.head, parts);
  return teacher;
}

template <class P>
void take_rows(Forward<P>* a, ValidRows<typename P::Elem>* rows, ScratchParts* parts) {
  for (auto* result : {&a->loss, &a->lse, &a->teacher_lse, &a->slope})
    rows->take_result(result, parts);
}
template <class P>
void take_rows(Backward<P>* a, ValidRows<typename P::Elem>* rows, ScratchParts* parts) {
  for (auto* input : {&a->lse, &a->teacher_lse, &a->slope, &a->dloss})
    rows->take_input(input, parts);
}

template <class Args>
using Call = linear_head::Call<Args, TeacherLayer<typename Args::Elem>>;

template <class Args>
Call<Args> call_of(Args a, void* scratch) {
  if constexpr (!WritesGradients<Args>) a.split = Split::kRows;
  return linear_head::make_call<TeacherLayer<typename Args::Elem>>(
      a, WritesGradients<Args>, scratch,
      [](Args* args, auto* rows, ScratchParts* parts) { take_rows(args, rows, parts); },
      take_teacher<Args>);
}

// What both passes of divergence have of a chunk.
template <class Sweep, class Args, class T>
Sweep sweep_of(const Call<Args>& call, const Chunk<T>& c) {
  Sweep sweep;
  static_cast<Options&>(sweep) = call.args;
  sweep.logits = {c.logits, {c.rows, c.columns}, {c.stride, 1}};
  sweep.teacher = {call.state.plan.logits, {c.rows, c.columns}, {c.stride, 1}};
  sweep.target = rows_of(call.args.target, c);
  sweep.lse = rows_of(call.args.lse, c);
  sweep.teacher_lse = rows_of(call.args.teacher_lse, c);
  sweep.slope = rows_of(call.args.slope, c);
  return sweep;
}

template <class Args, class T>
Status compute_teacher(const Call<Args>& call, Chunk<T> c, Stream stream) {
  c.logits = call.state.plan.logits;
  return linear_head::compute_logits(call.state.head, call.state.plan, c, stream);
}

template <class P>
class ForwardPass final : public linear_head::Pass<typename P::Elem> {
 public:
  using T = typename P::Elem;
  explicit ForwardPass(const Call<Forward<P>>& call) : call_(call) {}

  Status rows(const Chunk<T>& c, Stream stream) const override {
    if (const Status s = compute_teacher(call_, c, stream); !s.ok()) return s;
    auto sweep = sweep_of<divergence::Forward<P>>(call_, c);
    sweep.loss = rows_of(call_.args.loss, c);
    return divergence::forward(sweep, stream);
  }

 private:
  const Call<Forward<P>>& call_;
};

// A gradient follows from the row's saved sums, so any columns of it can be computed alone.
template <class P>
class BackwardPass final : public linear_head::Pass<typename P::Elem> {
 public:
  using T = typename P::Elem;
  explicit BackwardPass(const Call<Backward<P>>& call) : call_(call) {}

  Status gradient(const Chunk<T>& c, Stream stream) const override {
    if (const Status s = compute_teacher(call_, c, stream); !s.ok()) return s;
    auto sweep = sweep_of<divergence::Backward<P>>(call_, c);
    sweep.dloss = rows_of(call_.args.dloss, c);
    sweep.dlogits = {c.logits, {c.rows, c.columns}, {c.stride, 1}};
    return divergence::backward(sweep, stream);
  }

 private:
  const Call<Backward<P>>& call_;
};

template <class P>
ForwardPass<P> pass_of(const Call<Forward<P>>& call) {
  return ForwardPass<P>(call);
}
template <class P>
BackwardPass<P> pass_of(const Call<Backward<P>>& call) {
  return BackwardPass<P>(call);
}

template <class Args>
Status run(const Args& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  return linear_head::run_call(
      call_of(a, a.scratch.data), stream, [](const Call<Args>& call, Stream on) {
        if (call.state.valid) {
          const Status s = call.state.valid->gather(call.args.ignore_index, on);
          if (!s.ok()) return s;
        }
        return linear_head::run_pass(call, pass_of(call), on);
      });
}

template <class Args>
Status tune_products(const Args& a) {
  if (const Status s = check(a); !s.ok()) return s;
  const Call<Args> call = call_of(a, a.scratch.data);
  if (const Status s = linear_head::tune(call.head, call.plan); !s.ok()) return s;
  return linear_head::tune(call.state.head, call.state.plan);
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  return run(a, stream);
}
template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  return run(a, stream);
}
template <class P>
size_t workspace(const Forward<P>& a) {
  return call_of(a, nullptr).bytes;
}
template <class P>
size_t workspace(const Backward<P>& a) {
  return call_of(a, nullptr).bytes;
}
template <class P>
Status tune(const Forward<P>& a) {
  return tune_products(a);
}
template <class P>
Status tune(const Backward<P>& a) {
  return tune_products(a);
}

TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE(backward, Backward);
TIGON_INSTANTIATE_WORKSPACE(Forward);
TIGON_INSTANTIATE_WORKSPACE(Backward);
TIGON_INSTANTIATE_TUNE(Forward);
TIGON_INSTANTIATE_TUNE(Backward);

}  // namespace tigon::linear_divergence
