// SPDX-License-Identifier: Apache-2.0
// linear_policy   losses of policy gradients over the log-probabilities of tokens behind a linear
//                 layer, with x [T, H] and w [V, H], and their gradients, without ever holding all
//                 logits
//
// The loss of linear_head/engine.h. A block reads a row of a chunk once and joins its running
// maximum and the sums about it to those of the columns before; a kernel of a thread for each row
// makes log-probability, loss and the factor of the row's gradient of them; a block writes each
// row's gradient over its logits.
//
// Bytes beside those of the products: T*V*elem forward, 3*T*V*elem with gradients.
#include "kernels/linear_policy/linear_policy.h"

#include "kernels/linear_head/call.h"
#include "kernels/linear_policy/checks.h"
#include "kernels/linear_policy/tokens.h"
#include "kernels/signature/instantiate.h"

namespace tigon::linear_policy {
namespace {

using linear_head::Chunk;
using linear_head::ValidRows;
using log_prob::RowSums;

// Blocks per multiprocessor that registers must leave room for: what memory latency needs.
constexpr int kBlocks = 6;

// A part of the logits, and what belongs to its rows.
template <class T>
struct Part {
  T* logits;
  int64_t stride;
  int first, columns, classes;  // columns [first, first + columns) of all
  const int64_t* target;
  int64_t ignore_index;
  RowState* state;
};

// The target's column in the part; -1 where it is in another one, or no class.
template <class T>
TIGON_DEVICE int held_target(const Part<T>& p, int64_t target) {
  const int y = log_prob::column_of(target, p.classes);
  return y >= 0 ? log_prob::column_of(y - p.first, p.columns) : -1;
}

// slope: log2(e) / temperature. The sum for the entropy costs nothing beside the reads.
template <class T>
TIGON_KERNEL(kThreads, kBlocks)
add_kernel(Part<T> p, bool is_first, float slope) {
  TIGON_SHARED(RowSums, warps, [kThreads / 32]);
  const int64_t row = blockIdx.x, target = load(p.target + row);
  if (target == p.ignore_index) return;
  const T* const x = p.logits + row * p.stride;
  RowState* const state = p.state + row;
  const log_prob::JoinRowSums<true> join = {slope};
  const Slice slice = slice_of<kVec<T>>(x, p.columns, 0, 1);
  RowSums s = log_prob::sweep<true, kThreads>(x, slice, p.columns, 0, slope);
  s = block_join<kThreads>(s, join, warps);
  if (threadIdx.x != 0) return;
  if (!is_first)
    s = join({load(&state->sums.max), load(&state->sums.sum), load(&state->sums.moment)}, s);
  store(&state->sums.max, s.max);
  store(&state->sums.sum, s.sum);
  store(&state->sums.moment, s.moment);
  const int y = held_target(p, target);
  if (y >= 0 || is_first) store(&state->target, y >= 0 ? to_float(load(x + y)) : NAN);
}

// inverse: 1 / temperature.
template <class T>
TIGON_KERNEL(kThreads, kBlocks)
gradient_kernel(Part<T> p, float inverse) {
  constexpr int kWidth = kVec<T>;
  const int64_t row = blockIdx.x, target = load(p.target + row);
  const int thread = static_cast<int>(threadIdx.x);
  T* const x = p.logits + row * p.stride;
  const Slice slice = slice_of<kWidth>(x, p.columns, 0, 1);
  if (target == p.ignore_index)
    return log_prob::write_zeros<kWidth, kThreads>(x, slice, p.columns, 0, thread);
  const float g = load(&p.state[row].slope) * inverse;
  const log_prob::RowGradient<false> gradient = {inverse, load(&p.state[row].lse), g, -g, 0.0f};
  log_prob::write_gradient<kWidth, kThreads>(x, x, slice, p.columns, 0, thread, gradient,
                                             held_target(p, target));
}

// ---- launchers ----------------------------------------------------------------------------------

LaunchConfig thread_per_row(int64_t rows, Stream stream) {
  return {.grid = dim3(static_cast<unsigned>(ceil_div(rows, int64_t{kThreads}))),
          .block = dim3(kThreads),
          .stream = stream};
}

struct State {
  RowState* rows = nullptr;                                                      // [T]
  LossTotals* totals = nullptr;                                                  // of mean
  float *loss = nullptr, *kl = nullptr, *clipped = nullptr, *entropy = nullptr;  // [T], reduced
};

template <class P>
State take_state(const ForwardBackward<P>& a, int64_t rows, ScratchParts* parts) {
  State s;
  s.rows = parts->take<RowState>(rows);
  if (a.reduction == Reduction::kMean) s.totals = parts->take<LossTotals>(1);
  if (a.reduction == Reduction::kNone) return s;
  const auto take = [&](bool wanted) { return wanted ? parts->take<float>(rows) : nullptr; };
  s.loss = take(true);
  s.kl = take(static_cast<bool>(a.kl));
  s.clipped = take(static_cast<bool>(a.clipped));
  s.entropy = take(static_cast<bool>(a.entropy));
  return s;
}

template <class P>
void take_rows(ForwardBackward<P>* a, ValidRows<typename P::Elem>* rows, ScratchParts* parts) {
  const bool none = a->reduction == Reduction::kNone;
  for (auto* input : {&a->advantage, &a->old_logp, &a->ref_logp, none ? &a->dloss : &a->weight})
    rows->take_input(input, parts);
  for (auto* result : {&a->loss, &a->kl, &a->clipped, &a->entropy})
    none ? rows->take_result(result, parts) : rows->take_reduced(*result);
  rows->take_result(&a->logp, parts);
}

template <class P>
using Call = linear_head::Call<ForwardBackward<P>, State>;

// The engine's call behind what is made of inputs before rows are gathered. With reduction none the
// weights go into the upstream gradients, and the losses are weighted at the end.
template <class P>
struct Weighted {
  Call<P> call;
  float *advantage = nullptr, *dloss = nullptr;  // [T]; nullptr: as given
  size_t bytes = 0;                              // of all scratch
};

template <class P>
bool weighs_rows(const ForwardBackward<P>& a) {
  return a.weight && a.reduction == Reduction::kNone;
}

template <class P>
Weighted<P> call_of(ForwardBackward<P> a, void* scratch) {
  const int64_t rows = a.x.shape[0];
  ScratchParts parts(scratch);
  // Without memory an input that is given stays given: sizes depend on that.
  const auto take = [&](bool made, View<const float, 1>* input, const float* otherwise) {
    if (!made) return static_cast<float*>(nullptr);
    float* const to = parts.take<float>(rows);
    *input = view(to != nullptr ? static_cast<const float*>(to) : otherwise, rows);
    return to;
  };
  float* const advantage = take(static_cast<bool>(a.sampling_logp), &a.advantage, a.advantage.data);
  const bool weighs = weighs_rows(a);
  float* const dloss = take(weighs, &a.dloss, a.weight.data);
  if (weighs) a.weight = {};
  void* const engine_scratch = parts.take<float>(0);
  const size_t before = parts.bytes();
  a.scratch = {engine_scratch, a.scratch.bytes - std::min(before, a.scratch.bytes)};
  Weighted<P> w{
      linear_head::make_call<State>(a, false, engine_scratch, take_rows<P>, take_state<P>),
      advantage, dloss};
  w.bytes = before + w.call.bytes;
  return w;
}

// Before rows are gathered.
template <class P>
Status make_inputs(const ForwardBackward<P>& a, const Weighted<P>& w, Stream stream) {
  const int64_t rows = a.x.shape[0];
  if (rows == 0) return {};
  if (w.advantage != nullptr) {
    const Status s =
        launch(thread_per_row(rows, stream), importance_kernel, a.advantage.data, a.old_logp.data,
               a.sampling_logp.data, rows, a.importance_cap, w.advantage);
    if (!s.ok()) return s;
  }
  if (w.dloss == nullptr) return {};
  return launch(thread_per_row(rows, stream), weigh_kernel, a.weight.data, a.dloss.data, rows,
                w.dloss);
}

template <class P>
class PolicyPass final : public linear_head::Pass<typename P::Elem> {
 public:
  using T = typename P::Elem;
  explicit PolicyPass(const Call<P>& call) : call_(call) {}

  // A chunk is all columns of its rows.
  Status rows(const Chunk<T>& c, Stream stream) const override {
    if (const Status s = add(c, true, stream); !s.ok()) return s;
    if (const Status s = finish_rows(c.row, c.rows, stream); !s.ok()) return s;
    return call_.head.has_gradients() ? gradient(c, stream) : Status{};
  }
  Status add(const Chunk<T>& c, bool is_first, Stream stream) const override {
    return launch(block_per_row(c, stream), add_kernel<T>, part(c), is_first,
                  log_prob::kLog2E / call_.args.temperature);
  }
  Status finish(Stream stream) const override {
    return finish_rows(0, call_.head.x.shape[0], stream);
  }
  Status gradient(const Chunk<T>& c, Stream stream) const override {
    return launch(block_per_row(c, stream), gradient_kernel<T>, part(c),
                  1.0f / call_.args.temperature);
  }

 private:
  static LaunchConfig block_per_row(const Chunk<T>& c, Stream stream) {
    return {.grid = dim3(static_cast<unsigned>(c.rows)), .block = dim3(kThreads), .stream = stream};
  }
  Part<T> part(const Chunk<T>& c) const {
    const ForwardBackward<P>& a = call_.args;
    return {.logits = c.logits,
            .stride = c.stride,
            .first = static_cast<int>(c.column),
            .columns = static_cast<int>(c.columns),
            .classes = static_cast<int>(a.w.shape[0]),
            .target = a.target.data + c.row,
            .ignore_index = a.ignore_index,
            .state = call_.state.rows + c.row};
  }
  Status finish_rows(int64_t first, int64_t count, Stream stream) const {
    const ForwardBackward<P>& a = call_.args;
    const State& s = call_.state;
    const bool none = a.reduction == Reduction::kNone;
    const auto at = [&](auto* data) { return data != nullptr ? data + first : nullptr; };
    const auto out = [&](float* reduced, const View<float, 1>& result) {
      return at(none ? result.data : reduced);
    };
    const TokenRows rows{.options = a,
                         .rows = count,
                         .target = a.target.data + first,
                         .advantage = at(a.advantage.data),
                         .old_logp = at(a.old_logp.data),
                         .ref_logp = at(a.ref_logp.data),
                         .weight = at(a.weight.data),
                         .dloss = none ? at(a.dloss.data) : a.dloss.data,
                         .totals = s.totals,
                         .state = s.rows + first,
                         .loss = out(s.loss, a.loss),
                         .kl = out(s.kl, a.kl),
                         .clipped = out(s.clipped, a.clipped),
                         .entropy = out(s.entropy, a.entropy),
                         .logp = at(a.logp.data)};
    return launch(thread_per_row(count, stream), token_kernel, rows);
  }

  const Call<P>& call_;
};

template <class P>
Status count_totals(const Call<P>& call, Stream stream) {
  const ForwardBackward<P>& a = call.args;
  LossOptions counted;
  counted.ignore_index = a.ignore_index;
  return count_rows(a.target.data, call.head.x.shape[0], counted, nullptr, a.w.shape[0],
                    a.normaliser.data, call.state.totals, stream);
}

template <class P>
Status reduce(const Call<P>& call, Stream stream) {
  const ForwardBackward<P>& a = call.args;
  const State& s = call.state;
  const DivideBy divisor = a.reduction == Reduction::kMean ? DivideBy::kRows : DivideBy::kNothing;
  const auto to = [&](const float* values, const View<float, 1>& out) {
    if (!out) return Status{};
    return reduce_rows(values, call.head.x.shape[0], s.totals, divisor, out.data, stream);
  };
  if (const Status status = to(s.loss, a.loss); !status.ok()) return status;
  if (const Status status = to(s.kl, a.kl); !status.ok()) return status;
  if (const Status status = to(s.clipped, a.clipped); !status.ok()) return status;
  return to(s.entropy, a.entropy);
}

template <class P>
Status run_policy(const Call<P>& call, Stream stream) {
  if (call.state.totals != nullptr) {
    if (const Status s = count_totals(call, stream); !s.ok()) return s;
  }
  const PolicyPass<P> pass(call);
  if (const Status s = linear_head::run(call.head, call.plan, pass, stream); !s.ok()) return s;
  return call.args.reduction == Reduction::kNone ? Status{} : reduce(call, stream);
}

template <class P>
Status run(const ForwardBackward<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  const Weighted<P> w = call_of(a, a.scratch.data);
  if (a.scratch.bytes < w.bytes || (w.bytes > 0 && a.scratch.data == nullptr))
    return invalid("linear_policy: scratch is smaller than workspace()");
  if (const Status s = make_inputs(a, w, stream); !s.ok()) return s;
  if (const Status s = linear_head::run_call(w.call, stream, run_policy<P>); !s.ok()) return s;
  if (!weighs_rows(a) || a.x.shape[0] == 0) return {};
  return launch(thread_per_row(a.x.shape[0], stream), weigh_kernel, a.weight.data,
                static_cast<const float*>(a.loss.data), a.x.shape[0], a.loss.data);
}

template <class P>
Status tune_products(const ForwardBackward<P>& a) {
  if (const Status s = check(a); !s.ok()) return s;
  const Weighted<P> w = call_of(a, a.scratch.data);
  return linear_head::tune(w.call.head, w.call.plan);
}

// Forward is the same without gradients.
template <class P>
ForwardBackward<P> without_gradients(const Forward<P>& a) {
  ForwardBackward<P> all;
  static_cast<Options&>(all) = a;
  static_cast<ChunkOptions&>(all) = a;
  static_cast<Tokens<P>&>(all) = a;
  all.x = a.x;
  all.w = a.w;
  all.target = a.target;
  all.bias = a.bias;
  all.loss = a.loss;
  all.scratch = a.scratch;
  return all;
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  return run(without_gradients(a), stream);
}
template <class P>
Status forward_backward(const ForwardBackward<P>& a, Stream stream) {
  return run(a, stream);
}
template <class P>
size_t workspace(const Forward<P>& a) {
  return call_of(without_gradients(a), nullptr).bytes;
}
template <class P>
size_t workspace(const ForwardBackward<P>& a) {
  return call_of(a, nullptr).bytes;
}
template <class P>
Status tune(const Forward<P>& a) {
  return tune_products(without_gradients(a));
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

}  // namespace tigon::linear_policy
