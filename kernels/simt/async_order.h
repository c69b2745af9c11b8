// SPDX-License-Identifier: Apache-2.0
// What a bulk copy may overwrite, and which mbarriers it may signal. Bulk copies take another way
// to memory than loads and stores (PTX: the async proxy), and a barrier alone does not keep the two
// in order. Between an access and the copy over it there must be a bulk_fence(): of the thread that
// made the access, or of the one that asks for the copy. The latter's comes after a barrier that
// both passed after the access, or after its last wait at an mbarrier, if the other has arrived at
// one since. And who initialises an mbarrier that a copy or another block signals fences that.
//
// Whether the access is ordered before the copy at all is not asked here.
#pragma once
#include <cstdint>
#include <vector>

namespace tigon::simt {

struct Thread;
struct Worker;
namespace shadow {
struct Access;
}

class AsyncOrder {
 public:
  // Of a new cluster: nothing has been done.
  void clear() { threads_.clear(), unfenced_.clear(); }

  // Fences of the thread, and its arrivals at mbarriers, so far.
  uint32_t events(const Worker& w, const Thread& t) const;
  void fence(const Worker& w, const Thread& t);
  void arrive(const Worker& w, const Thread& t);
  void wait(const Worker& w, const Thread& t);
  // Whether a copy that `issuer` asks for now may take the place of what a thread of its cluster
  // has accessed.
  bool is_fenced(const Worker& w, const shadow::Access& access, const Thread& issuer) const;

  void initialize(const uint64_t* mbarrier, const Thread& by);
  void fence_initialized(const Thread& by);
  bool may_signal(const uint64_t* mbarrier) const;

 private:
  // When something was done, as counts of barriers.
  struct Moment {
    uint32_t warp = 0, block = 0, cluster = 0;
  };
  struct OfThread {
    uint32_t events = 0, fence = 0, arrival = 0;  // the latest ones, by their number; 0: none
    Moment at_fence, at_arrival;
    bool has_waited = false, fenced_after_wait = false;  // at an mbarrier; since the last wait
  };
  struct Initialization {
    const uint64_t* mbarrier;
    const Thread* by;
  };

  static Moment now(const Worker& w, const Thread& t);
  static bool is_ordered(const shadow::Access& access, const Thread& t, const Moment& moment);
  bool has_arrived(const Worker& w, const shadow::Access& access, const Thread& issuer) const;
  OfThread& of(const Worker& w, const Thread& t);

  std::vector<OfThread> threads_;         // by place in the cluster; empty: no events
  std::vector<Initialization> unfenced_;  // of mbarriers
};

}  // namespace tigon::simt
