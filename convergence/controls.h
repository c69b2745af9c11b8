// SPDX-License-Identifier: Apache-2.0
// Negative controls: faults planted in the kernels must make a training's evidence fail, and
// kernels without one must not.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "convergence/evidence.h"

namespace tigon::convergence {

struct Control {
  std::string fault;  // the switch in the kernels' source, or "scaled. ..."
  std::string what;
};
// Those in the kernels, then scaled results, which need no switch.
const std::vector<Control>& controls();

struct ControlReport {
  Control control;
  std::vector<PartReport> parts;
  double seconds_s = 0;
  // The first part that fails; nullptr: none.
  const PartReport* caught() const;
};

// Runs the evidence on kernels without a fault, whose control is the empty one and must not be
// caught, then on each fault. `plant` chooses the fault of this process, "" for none.
void run_controls(const EvidenceModel& model, const std::function<void(const char*)>& plant,
                  const std::function<void(const ControlReport&)>& sink);

// The evidence on the kernels that ship, from one seed.
struct SeedReport {
  uint64_t seed = 0;
  std::vector<PartReport> parts;
  double seconds_s = 0;
};

// Of n seeds that share no pair; every part that fails is a false alarm. `stop` ends it
// after the seed at hand.
void run_seeds(const EvidenceModel& model, int n, const std::atomic<bool>& stop,
               const std::function<void(const SeedReport&)>& sink);

}  // namespace tigon::convergence
