// SPDX-License-Identifier: Apache-2.0
// Times implementations of one pass side by side on one device: interleaved, on rotating buffers.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "harness/measure/call_set.h"
#include "harness/measure/statistics.h"

namespace tigon {

// An implementation with all it needs to be called on any of the sets.
struct Contender {
  Case c;
  const Implementation* implementation = nullptr;
  DeviceBuffer scratch;
};

// Several buffer sets of one case, visited in turn.
class Rotation {
 public:
  // As many sets as give `least_bytes` together, within `memory_bytes`.
  // Throws DeviceOutOfMemory when not even one fits.
  Rotation(const Case& c, size_t least_bytes, size_t memory_bytes);
  CallSet& next() { return sets_[next_++ % sets_.size()]; }
  CallSet& operator[](size_t i) { return sets_[i]; }
  size_t size() const { return sets_.size(); }

 private:
  std::vector<CallSet> sets_;
  size_t next_ = 0;
};

// Seed of the inputs of the first set, and of the calls whose outputs are compared.
inline constexpr uint64_t kTimedSeed = 42;

// Samples of one contender on one basis.
struct Timing {
  std::string impl, basis;
  std::vector<double> samples = {};  // seconds of one call
  std::string verdict = "passed";    // or "invalid", "unsupported"
  std::string reason = {};           // of all but passed
  // Of a timed call on the inputs of kTimedSeed; empty where several calls follow each other.
  std::vector<uint64_t> fingerprints = {};
  std::string verified_by = {}, not_verified = {};  // verify.h
};

// Runs the call on a stream. Throws DeviceError.
void call_once(const Contender& contender, const CallSet& set, Stream stream);

// basis "cold": caches flushed, the next set, event - call - event; contenders in turns (ABAB).
// After it, each contender's outputs of a timed call are compared with those of an untimed one.
std::vector<Timing> time_cold(std::vector<Contender>& contenders, Rotation& rotation,
                              const StoppingRule& rule);

// basis "graph": calls on all sets in turn captured once; time of a replay over its calls. Hides
// what launching costs the host. `hint_s`: about the time of one call.
std::vector<Timing> time_graph(std::vector<Contender>& contenders, Rotation& rotation,
                               const std::vector<double>& hint_s, const StoppingRule& rule);

// basis "wall": host clock around a call on the host executor; never kernel speed.
std::vector<Timing> time_wall(std::vector<Contender>& contenders, Rotation& rotation,
                              const StoppingRule& rule);

}  // namespace tigon
