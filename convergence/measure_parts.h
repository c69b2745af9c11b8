// SPDX-License-Identifier: Apache-2.0
// Time and peak memory of a training step by part: measured, or its memory planned.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "convergence/model.h"

namespace tigon::convergence {

struct PartsRequest {
  ModelConfig config;
  DType dtype = DType::kBF16;
  std::vector<std::string> kernels = {};  // of op_names(); the other ops are the naive chain
  int steps = 3;                          // timed; a first one is not
  int64_t memory = 0;                     // bytes that may be used; 0: what is free on the device
  bool plan_only = false;                 // nothing is run
  bool confirm = false;                   // what is planned not to fit is run, too
  std::function<void(int done, int of)> on_step = {};  // after each step; may be left out
};

// What a step holds at its peak.
struct PeakMemory {
  ByPart<int64_t> bytes;  // in use, by the part that they belong to
  int64_t unused = 0;     // of the arena, which is one allocation for the whole step
  int64_t total() const { return bytes.sum() + unused; }
};

// The peak of a step whose arena is planned so, and whose `part` allocates `intermediates` bytes
// more in `phase`. Without any, the peak is the phase with most of the arena in use.
PeakMemory peak_of(const ArenaPlan& arena, Part part, int phase, int64_t intermediates);

enum class Outcome { kMeasured, kPlanned, kOutOfMemory };
const char* name_of(Outcome outcome);  // "measured", "planned", "out of memory"

struct PartsReport {
  Outcome outcome = Outcome::kPlanned;
  std::string reason = {};  // why out of memory, in words; or what was planned otherwise
  int64_t limit_bytes = 0;
  int64_t planned_bytes = 0;
  int64_t peak_bytes = 0;         // measured; 0 unless it was
  PeakMemory peak;                // of peak_bytes, or of planned_bytes where nothing was measured
  ByPart<int64_t> intermediates;  // the most that each part allocates beside the arena; measured
  // Of the step with the median time.
  ByPart<double> seconds;
  double step_s = 0;           // from its first to its last point on the stream
  double tokens_per_s = 0;     // from the wall time of steps whose parts are not measured; median
  std::string attention = {};  // which ran, or probably would (AttentionPlan::by)
  std::string launches = {};   // of the steps behind tokens_per_s (Model::launches)
  ProductsAlone products;      // those of the part "linear", alone; measured
};

// Trains on random tokens. Running out of memory is an outcome. Throws ConvergeError: 2 for an
// unknown op, 5 when a launch fails.
PartsReport measure_parts(const PartsRequest& request);

// The ops that this model has, of op_names().
std::vector<std::string> ops_of(const ModelConfig& config);

}  // namespace tigon::convergence
