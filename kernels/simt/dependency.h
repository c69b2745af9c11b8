// SPDX-License-Identifier: Apache-2.0
// Dependent launches: which threads know that the launches before theirs have ended. A thread knows
// once it has called dependency_wait(), or a barrier has come after such a call in its warp, block
// or cluster.
#pragma once
#include <cstdint>
#include <vector>

namespace tigon::simt {

struct Thread;
struct Worker;

class DependencyWaits {
 public:
  // Of a new cluster: nobody has waited.
  void clear() { lanes_.clear(), warps_.clear(), blocks_.clear(), cluster_ = {}; }
  void wait(const Worker& w, const Thread& t);
  bool cover(const Worker& w, const Thread& t) const;

 private:
  // The first wait of some threads: they all know from their next barrier on.
  struct First {
    bool made = false;
    uint32_t epoch = 0;
    void note(uint32_t now);
    bool is_before(uint32_t now) const { return made && epoch != now; }
  };
  // Empty until somebody waits.
  std::vector<uint32_t> lanes_;  // of each warp: those that have waited
  std::vector<First> warps_, blocks_;
  First cluster_;
};

}  // namespace tigon::simt
