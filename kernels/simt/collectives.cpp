// SPDX-License-Identifier: Apache-2.0
// Warp collectives: shuffles, votes, reductions, __syncwarp. The last lane to arrive completes the
// operation for all and goes on; results have their own array, so that a lane may run ahead.
#include <bit>
#include <cstring>

#include "kernels/simt/check.h"
#include "kernels/simt/report.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {

constexpr uint32_t kAllLanes = 0xffffffffu;

// Calls f(lane) for every lane of the mask.
template <class F>
void each(uint32_t lanes, F&& f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<unsigned>(std::countr_zero(lanes)));
}

// From one description for all pending lanes to one per lane.
void spread(Warp& w) {
  each(w.pending, [&](unsigned l) { w.call[l] = w.common; });
  w.uniform = false;
}

const Warp::Call& call_of(const Warp& w, unsigned lane) {
  return w.uniform ? w.common : w.call[lane];
}

unsigned shuffle_source(const Warp::Call& c, unsigned lane) {
  const int l = static_cast<int>(lane);
  const int first = l & ~(c.width - 1);  // of the lane's segment
  const int end = first + c.width;
  int source = l;
  switch (c.op) {
    case WarpOp::kIndex:
      source = first + (c.arg & (c.width - 1));
      break;
    case WarpOp::kUp:
      source = l - c.arg;
      break;
    case WarpOp::kDown:
      source = l + c.arg;
      break;
    default:
      source = l ^ c.arg;
      break;
  }
  const bool outside = c.op == WarpOp::kUp ? source < first : source >= end;
  return static_cast<unsigned>(outside ? l : source);
}

void shuffle(Warp& w, uint32_t lanes, bool strict) {
  each(lanes, [&](unsigned l) {
    const unsigned source = shuffle_source(call_of(w, l), l);
    const bool defined = (lanes >> source) & 1u;
    if (!defined && strict) report_undefined_shuffle(w, l, source);
    w.result[l] = defined ? w.value[source] : ~uint64_t{0};
  });
}

uint32_t reduce(const Warp& w, uint32_t lanes, WarpOp op) {
  uint32_t r = op == WarpOp::kMin || op == WarpOp::kAnd ? ~0u : 0u;
  each(lanes, [&](unsigned l) {
    const auto v = static_cast<uint32_t>(w.value[l]);
    switch (op) {
      case WarpOp::kAdd:
        r += v;
        break;
      case WarpOp::kMin:
        r = v < r ? v : r;
        break;
      case WarpOp::kMax:
        r = v > r ? v : r;
        break;
      case WarpOp::kAnd:
        r &= v;
        break;
      default:
        r |= v;
        break;
    }
  });
  return r;
}

uint32_t lanes_where(uint32_t lanes, const uint64_t* values, uint64_t value) {
  uint32_t r = 0;
  each(lanes, [&](unsigned l) { r |= static_cast<uint32_t>(values[l] == value) << l; });
  return r;
}

void evaluate(Warp& w, uint32_t lanes, WarpOp op, bool strict) {
  uint64_t same = 0;  // result of operations that give every lane the same
  switch (op) {
    case WarpOp::kIndex:
    case WarpOp::kUp:
    case WarpOp::kDown:
    case WarpOp::kXor:
      shuffle(w, lanes, strict);
      return;
    case WarpOp::kMatchAny:
      each(lanes, [&](unsigned l) { w.result[l] = lanes_where(lanes, w.value, w.value[l]); });
      return;
    case WarpOp::kFused:
      return;
    case WarpOp::kSync:
      ++w.epoch;
      return;
    case WarpOp::kBallot:
      same = lanes & ~lanes_where(lanes, w.value, 0);
      break;
    case WarpOp::kAny:
      same = lanes_where(lanes, w.value, 0) != lanes;
      break;
    case WarpOp::kAll:
      same = lanes_where(lanes, w.value, 0) == 0;
      break;
    default:
      same = reduce(w, lanes, op);
      break;
  }
  each(lanes, [&](unsigned l) { w.result[l] = same; });
}

void release(Worker& worker, Warp& w, uint32_t lanes, const Thread* running) {
  w.pending &= ~lanes;
  if (lanes == w.live) check::end_of_interval(w);
  if (running != nullptr) lanes &= ~lane_bit(*running);
  each(lanes, [&](unsigned l) { w.threads[l].state = State::kReady; });
  worker.ready.add(w, lanes);
}

// Completes the group of lanes named by `mask` if all of its live ones have arrived.
void try_complete(Worker& worker, Warp& w, uint32_t mask, const Thread* running) {
  const uint32_t lanes = mask & w.live;
  if (lanes == 0 || (w.pending & lanes) != lanes) return;
  const unsigned first = static_cast<unsigned>(std::countr_zero(lanes));
  const WarpOp op = call_of(w, first).op;
  if (worker.config.strict && !w.uniform) {
    each(lanes, [&](unsigned l) {
      if (w.call[l].mask != mask || w.call[l].op != op) report_divergent_collective(w, first, l);
    });
  }
  evaluate(w, lanes, op, worker.config.strict);
  release(worker, w, lanes, running);
}

// The usual case: a full warp that agrees on its arguments.
bool evaluate_full_warp(Warp& w) {
  const auto arg = static_cast<unsigned>(w.common.arg);
  if (w.common.width != 32) return false;
  switch (w.common.op) {
    case WarpOp::kXor:
      if (arg > 31) return false;
      for (unsigned l = 0; l < 32; ++l) w.result[l] = w.value[l ^ arg];
      return true;
    case WarpOp::kDown:
      for (unsigned l = 0; l < 32; ++l) w.result[l] = w.value[arg < 32 - l ? l + arg : l];
      return true;
    case WarpOp::kIndex:
      for (unsigned l = 0; l < 32; ++l) w.result[l] = w.value[arg & 31];
      return true;
    case WarpOp::kSync:
      ++w.epoch;
      return true;
    default:
      return false;
  }
}

// Notes what `lane` asks for.
void enter(Warp& w, unsigned lane, const Warp::Call& call) {
  if (w.pending == 0) {
    w.common = call;
    w.uniform = true;
  } else if (w.uniform && !(call == w.common)) {
    spread(w);
  }
  if (!w.uniform) w.call[lane] = call;
  w.pending |= 1u << lane;
}

}  // namespace

uint64_t warp_op(WarpOp op, uint32_t mask, uint64_t value, int arg, int width) {
  Worker& worker = *this_worker;
  Thread& t = current_thread();
  Warp& w = *t.warp;
  const unsigned lane = t.lane;
  t.pc = __builtin_return_address(0);
  if ((mask & lane_bit(t)) == 0) {
    if (worker.config.strict) report_lane_not_in_mask(t, mask);
    mask |= lane_bit(t);
  }
  enter(w, lane, {mask, arg, op, static_cast<uint8_t>(width)});
  w.value[lane] = value;
  const uint32_t lanes = mask & w.live;
  if ((w.pending & lanes) != lanes) {
    t.state = State::kAtWarp;
    worker.suspend(t);
    return w.result[lane];
  }
  if (w.uniform && w.pending == kAllLanes && evaluate_full_warp(w))
    release(worker, w, kAllLanes, &t);
  else
    try_complete(worker, w, mask, &t);
  worker.yield(t);
  return w.result[lane];
}

bool warp_fused(const void* in, void* out, unsigned bytes, void (*combine)(const void*, void*)) {
  Worker& worker = *this_worker;
  Thread& t = current_thread();
  Warp& w = *t.warp;
  const unsigned lane = t.lane;
  if (!worker.config.fused || bytes > kMaxFusedBytes || w.live != kAllLanes) return false;
  t.pc = __builtin_return_address(0);
  enter(w, lane, {kAllLanes, static_cast<int>(bytes), WarpOp::kFused, 32});
  memcpy(w.fused_in + lane * bytes, in, bytes);
  if (w.pending == kAllLanes && w.uniform) {
    combine(w.fused_in, w.fused_out);
    release(worker, w, kAllLanes, &t);
  } else {
    t.state = State::kAtWarp;
    worker.suspend(t);
  }
  memcpy(out, w.fused_out + lane * bytes, bytes);
  return true;
}

uint32_t active_mask() { return lane_bit(current_thread()); }

// A lane has exited: groups that waited for nobody else can go on.
void Worker::warp_thread_left(Warp& w, unsigned lane) {
  if (w.uniform) spread(w);
  for (uint32_t waiting = w.pending; waiting != 0;) {
    const auto l = static_cast<unsigned>(std::countr_zero(waiting));
    const uint32_t mask = w.call[l].mask;
    waiting &= ~mask & ~(1u << l);
    if ((mask >> lane) & 1u) try_complete(*this, w, mask, nullptr);
  }
}

}  // namespace tigon::simt
