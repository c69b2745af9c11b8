// SPDX-License-Identifier: Apache-2.0
// A call of a loss behind a linear layer: its head, its scratch, and its valid rows alone where
// their number has a bound.
#pragma once
#include <optional>

#include "kernels/linear_head/engine.h"
#include "kernels/linear_head/valid_rows.h"

namespace tigon::linear_head {

// State: what the loss itself has in the scratch.
template <class Args, class State>
struct Call {
  using T = typename Args::Elem;
  Args args;  // by places where there are valid rows
  Head<T> head;
  std::optional<ValidRows<T>> valid = {};
  State state = {};
  Plan<T> plan = {};
  size_t bytes = 0;  // of scratch
};

// False for sizes that are refused: nothing is planned of them, and they need no scratch.
template <class T>
bool can_be_planned(const Head<T>& a) {
  return a.x.shape[0] >= 0 && a.x.shape[1] >= 1 && a.w.shape[0] >= 1;
}

// The call with its arrays in `memory`; nullptr where only their size is asked for.
//   take_rows(args, valid, scratch) hands what belongs to rows, beside x, dx and the targets, to
//   ValidRows;
//   take_state(args, rows, scratch) returns the State of so many rows.
template <class State, class Args, class TakeRows, class TakeState>
Call<Args, State> make_call(const Args& a, bool knows_rows, void* memory, const TakeRows& take_rows,
                            const TakeState& take_state) {
  Call<Args, State> call{.args = a, .head = head_of(a)};
  call.head.knows_rows = knows_rows;
  if (!can_be_planned(call.head)) return call;
  ScratchParts scratch(memory);
  call.valid = valid_rows(call.head, a.target, &scratch);
  if (call.valid) {
    call.head = call.valid->head();
    call.args.target = call.valid->target();
    take_rows(&call.args, &*call.valid, &scratch);
  }
  call.state = take_state(a, call.head.x.shape[0], &scratch);
  call.plan = plan(call.head, &scratch);
  call.bytes = scratch.bytes();
  return call;
}

// Enqueues run(call, stream), between gathering and spreading where there are valid rows.
template <class Args, class State, class Run>
Status run_call(const Call<Args, State>& call, Stream stream, const Run& run) {
  const Scratch& given = call.args.scratch;
  if (given.bytes < call.bytes || (call.bytes > 0 && given.data == nullptr))
    return invalid("linear head: scratch is smaller than workspace()");
  if (!call.valid) return run(call, stream);
  if (const Status s = call.valid->gather(call.args.ignore_index, stream); !s.ok()) return s;
  if (const Status s = run(call, stream); !s.ok()) return s;
  return call.valid->spread(stream);
}

// A backward pass of which no gradient is wanted does nothing.
template <class Args, class State, class P>
Status run_pass(const Call<Args, State>& call, const P& pass, Stream stream) {
  if (WritesGradients<Args> && !call.head.has_gradients()) return {};
  return run(call.head, call.plan, pass, stream);
}

// The rows of a chunk of a vector over rows; left out where the vector is.
template <class T, class Elem>
View<T, 1> rows_of(const View<T, 1>& v, const Chunk<Elem>& c) {
  return v ? view(v.data + c.row, c.rows) : View<T, 1>{};
}

}  // namespace tigon::linear_head
