// SPDX-License-Identifier: Apache-2.0
// The papers' claims as experiments: each runs naive against fused and says of every claim what was
// measured, how, and whether it holds. `tigon converge --experiment NAME` and `--all` run them.
#pragma once
#include <limits>

#include "convergence/converge.h"

namespace tigon::convergence {

// How a claim's number reads; more is always better.
enum class Quantity {
  kGain,    // fused over naive - 1: 0.2 is +20%
  kSaved,   // 1 - fused over naive: 0.6 is -60%
  kFactor,  // how many times: 3 is 3x
  kShare,   // of a whole: 0.722 is 72.2%
  kPoints,  // one share less another: 0.018 is +1.8 points
};

struct Claim {
  std::string text;  // what is claimed
  Quantity quantity;
  double number;  // as published
  std::string source;
};

// Where a finding's number is from: a run here, a plan of memory, or a run on data of a generator.
inline constexpr const char *kMeasured = "measured", *kPlanned = "planned",
                            *kMadeUp = "made-up data";

// What an experiment found of one claim.
struct Finding {
  double value = std::numeric_limits<double>::quiet_NaN();  // in the claim's quantity
  std::string basis = {};                                   // how it was measured or planned
  std::string size = {};                                    // of what
  std::string reason = {};  // why it was not measured, or what else there is to know
  // Where it is not the value against the claim's number that decides.
  std::string verdict = {};
  const char* from = kMeasured;  // or kPlanned, kMadeUp
};

struct ExperimentSettings {
  bool quick = false;
  uint64_t seed = 1;
  std::string data = {};     // as ConvergeRequest
  std::string actions = {};  // a log of learners (next_action/logs.h); empty: they are made up
  bool graph = true;         // as ConvergeRequest
};

// What the run function is given beside its settings.
struct ExperimentContext {
  ExperimentSettings settings;
  const ConvergeObserver& observer;
  const std::atomic<bool>* stop;
  bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  void note(const std::string& line) const { observer.note(line); }
};

struct Experiment {
  std::string name;
  std::string what;  // one line
  std::vector<Claim> claims;
  // One finding per claim, in their order; empty when it was stopped. Throws ConvergeError.
  std::vector<Finding> (*run)(const ExperimentContext&);
};

struct ClaimReport {
  std::string experiment;
  Claim claim;
  Finding finding;
  std::string on;  // the GPU's name; of a CPU behind "host executor: "
  // "holds", "does not hold", "not measured here"; "other data" when the published number is of
  // data that are not here. What was measured on a CPU, on a small model, decides nothing.
  std::string verdict;
};

// All of them, in the order of the table.
const std::vector<Experiment>& experiments();
std::vector<std::string> experiment_names();

// Runs one; a report per claim, none when it was stopped. Throws ConvergeError, with exit code 2
// for a name that is not there.
std::vector<ClaimReport> run_experiment(const std::string& name, const ExperimentContext& context);

// "+20%", "-60%", "3x", "72.2%", "+1.8"; "-" for a number that is not there.
std::string show(Quantity quantity, double value);
const char* name_of(Quantity quantity);

// Of claims on speed where there is no GPU.
Finding no_gpu();
bool on_gpu();

}  // namespace tigon::convergence
