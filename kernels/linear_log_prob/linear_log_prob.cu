// SPDX-License-Identifier: Apache-2.0
// linear_log_prob   log-probabilities of tokens and their entropy over logits = x w^T + b, with
//                   x [T, H] and w [V, H], and the gradient of both, without ever holding all
//                   logits
//
// The loss of linear_head/engine.h. Forward: a block reads a row of a chunk once and joins its
// running maximum and the sums about it to those of the columns before; a last kernel makes the
// results of them. Backward: p comes from the saved lse, so that each chunk's gradient is written
// over its logits as soon as they are computed.
//
// Bytes beside those of the products: T*V*elem forward, 2*T*V*elem backward.
#include "kernels/linear_log_prob/linear_log_prob.h"

#include "kernels/linear_head/call.h"
#include "kernels/log_prob/row.h"
#include "kernels/loss/shard.h"
#include "kernels/signature/instantiate.h"

namespace tigon::linear_log_prob {
namespace {

using linear_head::Chunk;
using linear_head::Head;
using linear_head::rows_of;
using linear_head::ValidRows;
using linear_head::WritesGradients;
using log_prob::RowSums;

constexpr int kThreads = 256;  // a part of a row is a few tens of KB
// Blocks per multiprocessor that registers must leave room for. The entropy's gradient takes more
// of them, and would spill.
constexpr int kBlocks = 6, kEntropyBlocks = 4;

// A row's sums over some columns, and its target's logit; NaN where that is in none of them.
struct RowState {
  RowSums sums;
  float target;
};

TIGON_DEVICE RowSums load_sums(const RowState* state) {
  return {load(&state->sums.max), load(&state->sums.sum), load(&state->sums.moment)};
}
TIGON_DEVICE void store_sums(RowState* state, const RowSums& s) {
  store(&state->sums.max, s.max);
  store(&state->sums.sum, s.sum);
  store(&state->sums.moment, s.moment);
}

// slope: log2(e) / temperature.
template <class P, bool kEntropy>
TIGON_KERNEL(kThreads, kBlocks)
add_kernel(log_prob::Forward<P> a, Shard held, RowState* state, bool is_first, float slope) {
  using T = typename P::Elem;
  TIGON_SHARED(RowSums, warps, [kThreads / 32]);
  const int64_t row = blockIdx.x;
  const int64_t target = load(a.target.data + row);
  if (target == a.ignore_index) return;
  const int columns = static_cast<int>(a.logits.shape[1]);
  const T* const x = a.logits.data + row * a.logits.stride[0];
  const log_prob::JoinRowSums<kEntropy> join = {slope};
  const Slice slice = slice_of<kVec<T>>(x, columns, 0, 1);
  RowSums s = log_prob::sweep<kEntropy, kThreads>(x, slice, columns, 0, slope);
  s = block_join<kThreads>(s, join, warps);
  if (threadIdx.x != 0) return;
  if (!is_first) s = join(load_sums(state + row), s);
  store_sums(state + row, s);
  const int y = log_prob::held_target(target, held, columns);
  if (y >= 0)
    store(&state[row].target, to_float(load(x + y)));
  else if (is_first)
    store(&state[row].target, NAN);
}

template <class P>
TIGON_KERNEL(kThreads)
finish_kernel(log_prob::Forward<P> a, const RowState* state) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= a.target.shape[0]) return;
  if (load(a.target.data + row) == a.ignore_index)
    return log_prob::write_row(a, row, 0.0f, 0.0f, 0.0f);
  log_prob::write_sums(a, row, load_sums(state + row), load(&state[row].target));
}

template <class P, bool kEntropy>
TIGON_KERNEL(kThreads, kEntropy ? kEntropyBlocks : kBlocks)
gradient_kernel(log_prob::Backward<P> a, Shard held, float inverse) {
  using T = typename P::Elem;
  constexpr int kWidth = kVec<T>;
  const int64_t row = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const int columns = static_cast<int>(a.dlogits.shape[1]);
  T* const x = a.dlogits.data + row * a.dlogits.stride[0];
  const Slice slice = slice_of<kWidth>(x, columns, 0, 1);
  const int64_t target = load(a.target.data + row);
  if (target == a.ignore_index)
    return log_prob::write_zeros<kWidth, kThreads>(x, slice, columns, 0, thread);
  const int y = log_prob::class_of(target, held);
  const auto gradient = log_prob::row_gradient<kEntropy>(a, row, y, inverse);
  log_prob::write_gradient<kWidth, kThreads>(x, x, slice, columns, 0, thread, gradient,
                                             log_prob::held_target(target, held, columns));
}

// ---- launchers ----------------------------------------------------------------------------------

template <class Args>
Status check_rows(const Args& a) {
  const int64_t rows = a.x.shape[0];
  if (rows > INT_MAX) return unsupported("linear_log_prob: there must be fewer than 2^31 rows");
  if (!has_shape(a.target, rows) || !has_shape(a.lse, rows))
    return invalid("linear_log_prob: target and lse must be [T]");
  if (is_missing(a.target) || is_missing(a.lse))
    return invalid("linear_log_prob: target and lse must not be null");
  if (a.entropy && !has_shape(a.entropy, rows))
    return invalid("linear_log_prob: entropy must be [T]");
  if (!log_prob::is_temperature(a.temperature))
    return invalid("linear_log_prob: temperature and its inverse must be finite and above 0");
  return {};
}

template <class P>
Status check(const Forward<P>& a) {
  if (const Status s = linear_head::check(head_of(a)); !s.ok()) return s;
  if (const Status s = check_rows(a); !s.ok()) return s;
  if (is_missing(a.logp) || !has_shape(a.logp, a.x.shape[0]))
    return invalid("linear_log_prob: logp must be [T]");
  return {};
}

template <class P>
Status check(const Backward<P>& a) {
  if (const Status s = linear_head::check(head_of(a)); !s.ok()) return s;
  if (const Status s = check_rows(a); !s.ok()) return s;
  const int64_t rows = a.x.shape[0];
  if (is_missing(a.dlogp) || !has_shape(a.dlogp, rows))
    return invalid("linear_log_prob: dlogp must be [T]");
  if (!a.dentropy) return {};
  if (!has_shape(a.dentropy, rows)) return invalid("linear_log_prob: dentropy must be [T]");
  if (is_missing(a.entropy) || !has_shape(a.entropy, rows))
    return invalid("linear_log_prob: the gradient of the entropy takes the entropy [T] of forward");
  return {};
}

template <class P>
void take_rows(Forward<P>* a, ValidRows<typename P::Elem>* rows, ScratchParts* parts) {
  for (auto* result : {&a->logp, &a->lse, &a->entropy}) rows->take_result(result, parts);
}
template <class P>
void take_rows(Backward<P>* a, ValidRows<typename P::Elem>* rows, ScratchParts* parts) {
  for (auto* input : {&a->lse, &a->dlogp, &a->dentropy, &a->entropy})
    rows->take_input(input, parts);
}

// With the state of forward's rows [T]; of backward nullptr.
template <class Args>
using Call = linear_head::Call<Args, RowState*>;

template <class Args>
Call<Args> call_of(const Args& a, void* scratch) {
  constexpr bool kKnowsRows = WritesGradients<Args>;
  const auto rows_of_call = [](Args* args, auto* rows, ScratchParts* parts) {
    take_rows(args, rows, parts);
  };
  const auto state = [](const Args&, int64_t rows, ScratchParts* parts) {
    return kKnowsRows ? nullptr : parts->take<RowState>(rows);
  };
  return linear_head::make_call<RowState*>(a, kKnowsRows, scratch, rows_of_call, state);
}

template <class T>
Shard held_by(const Head<T>& head, const Chunk<T>& c) {
  return {.first_class = c.column, .classes = head.w.shape[0]};
}

template <class T>
LaunchConfig block_per_row(const Chunk<T>& c, Stream stream) {
  return {.grid = dim3(static_cast<unsigned>(c.rows)), .block = dim3(kThreads), .stream = stream};
}

// By rows a chunk is all columns of its rows.
template <class P>
class ForwardPass final : public linear_head::Pass<typename P::Elem> {
 public:
  using T = typename P::Elem;
  explicit ForwardPass(const Call<Forward<P>>& call) : call_(call) {}

  Status rows(const Chunk<T>& c, Stream stream) const override {
    if (const Status s = add(c, true, stream); !s.ok()) return s;
    return finish_rows(c, stream);
  }
  Status add(const Chunk<T>& c, bool is_first, Stream stream) const override {
    const auto kernel = call_.args.entropy ? add_kernel<P, true> : add_kernel<P, false>;
    return launch(block_per_row(c, stream), kernel, part(c), held_by(call_.head, c),
                  call_.state + c.row, is_first, log_prob::kLog2E / call_.args.temperature);
  }
  Status finish(Stream stream) const override {
    return finish_rows(linear_head::all_rows(call_.head), stream);
  }

 private:
  Status finish_rows(const Chunk<T>& c, Stream stream) const {
    const auto blocks = static_cast<unsigned>(ceil_div(c.rows, int64_t{kThreads}));
    return launch({.grid = dim3(blocks), .block = dim3(kThreads), .stream = stream},
                  finish_kernel<P>, part(c), call_.state + c.row);
  }
  log_prob::Forward<P> part(const Chunk<T>& c) const {
    const Forward<P>& a = call_.args;
    log_prob::Forward<P> f;
    static_cast<Options&>(f) = a;
    f.logits = {c.logits, {c.rows, c.columns}, {c.stride, 1}};
    f.target = rows_of(a.target, c);
    f.logp = rows_of(a.logp, c);
    f.lse = rows_of(a.lse, c);
    f.entropy = rows_of(a.entropy, c);
    return f;
  }

  const Call<Forward<P>>& call_;
};

template <class P>
class BackwardPass final : public linear_head::Pass<typename P::Elem> {
 public:
  using T = typename P::Elem;
  explicit BackwardPass(const Call<Backward<P>>& call) : call_(call) {}

  Status gradient(const Chunk<T>& c, Stream stream) const override {
    const auto kernel = call_.args.dentropy ? gradient_kernel<P, true> : gradient_kernel<P, false>;
    return launch(block_per_row(c, stream), kernel, part(c), held_by(call_.head, c),
                  1.0f / call_.args.temperature);
  }

 private:
  log_prob::Backward<P> part(const Chunk<T>& c) const {
    const Backward<P>& a = call_.args;
    log_prob::Backward<P> b;
    static_cast<Options&>(b) = a;
    b.target = rows_of(a.target, c);
    b.lse = rows_of(a.lse, c);
    b.dlogp = rows_of(a.dlogp, c);
    b.dentropy = rows_of(a.dentropy, c);
    b.entropy = rows_of(a.entropy, c);
    b.dlogits = {c.logits, {c.rows, c.columns}, {c.stride, 1}};
    return b;
  }

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
  return linear_head::run_call(call_of(a, a.scratch.data), stream,
                               [](const Call<Args>& call, Stream on) {
                                 return linear_head::run_pass(call, pass_of(call), on);
                               });
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

}  // namespace tigon::linear_log_prob
