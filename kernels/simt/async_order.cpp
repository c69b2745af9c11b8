// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/async_order.h"

#include <algorithm>

#include "kernels/simt/shadow.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {

size_t place_of(const Worker& w, const Thread& t) {
  return static_cast<size_t>(&t - w.threads.get());
}

const Thread& thread_of(const Worker& w, const shadow::Access& a) {
  const Block& b = w.blocks[a.block_plus_1 - 1 - w.blocks[0].linear];
  return w.threads[size_t{b.first_warp} * 32 + a.thread];
}

// An access has the low bits of its thread's count of events.
uint32_t events_before(const shadow::Access& a, uint32_t now) {
  return now - ((now - a.events) & shadow::kEventMask);
}

// Of counts of barriers; an access has the low bits of `then`.
bool is_later(uint32_t now, uint16_t then) { return static_cast<int16_t>(now - then) > 0; }

}  // namespace

AsyncOrder::OfThread& AsyncOrder::of(const Worker& w, const Thread& t) {
  if (threads_.empty()) threads_.resize(w.warps.size() * 32);
  return threads_[place_of(w, t)];
}

AsyncOrder::Moment AsyncOrder::now(const Worker& w, const Thread& t) {
  return {t.warp->epoch, t.own_block().epoch, w.cluster_epoch};
}

uint32_t AsyncOrder::events(const Worker& w, const Thread& t) const {
  return threads_.empty() ? 0 : threads_[place_of(w, t)].events;
}

void AsyncOrder::fence(const Worker& w, const Thread& t) {
  OfThread& own = of(w, t);
  own.fence = ++own.events;
  own.at_fence = now(w, t);
  own.fenced_after_wait = own.has_waited;
  fence_initialized(t);
}

void AsyncOrder::arrive(const Worker& w, const Thread& t) {
  OfThread& own = of(w, t);
  own.arrival = ++own.events;
  own.at_arrival = now(w, t);
}

void AsyncOrder::wait(const Worker& w, const Thread& t) {
  OfThread& own = of(w, t);
  own.has_waited = true;
  own.fenced_after_wait = false;
}

// Whether a barrier that t had passed at that moment came after the access.
bool AsyncOrder::is_ordered(const shadow::Access& a, const Thread& t, const Moment& moment) {
  if (is_later(moment.cluster, a.cluster_epoch)) return true;
  if (a.block_plus_1 - 1 != t.own_block().linear) return false;
  return is_later(moment.block, a.block_epoch) ||
         (a.thread / 32 == t.linear / 32 && is_later(moment.warp, a.warp_epoch));
}

// Whether the thread, or another lane for it, has arrived at an mbarrier since its access.
bool AsyncOrder::has_arrived(const Worker& w, const shadow::Access& a, const Thread& issuer) const {
  const Thread& by = thread_of(w, a);
  const OfThread& own = threads_[place_of(w, by)];
  if (own.arrival > events_before(a, own.events)) return true;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const Thread& mate = by.warp->threads[lane];
    const OfThread& of_mate = threads_[place_of(w, mate)];
    if (&mate != &issuer && of_mate.arrival != 0 && is_ordered(a, mate, of_mate.at_arrival))
      return true;
  }
  return false;
}

bool AsyncOrder::is_fenced(const Worker& w, const shadow::Access& a, const Thread& issuer) const {
  if (threads_.empty()) return false;
  const OfThread& by = threads_[place_of(w, thread_of(w, a))];
  if (by.fence > events_before(a, by.events)) return true;
  const OfThread& own = threads_[place_of(w, issuer)];
  if (own.fence == 0) return false;
  return is_ordered(a, issuer, own.at_fence) ||
         (own.fenced_after_wait && has_arrived(w, a, issuer));
}

void AsyncOrder::initialize(const uint64_t* mbarrier, const Thread& by) {
  std::erase_if(unfenced_, [&](const Initialization& i) { return i.mbarrier == mbarrier; });
  unfenced_.push_back({mbarrier, &by});
}

void AsyncOrder::fence_initialized(const Thread& by) {
  std::erase_if(unfenced_, [&](const Initialization& i) { return i.by == &by; });
}

bool AsyncOrder::may_signal(const uint64_t* mbarrier) const {
  return std::none_of(unfenced_.begin(), unfenced_.end(),
                      [&](const Initialization& i) { return i.mbarrier == mbarrier; });
}

}  // namespace tigon::simt
