// SPDX-License-Identifier: Apache-2.0
// A whole bench: ceilings, every cell, and on the host the counted traffic; in child processes.
#pragma once
#include <functional>
#include <string>

#include "harness/measure/measure_cell.h"
#include "harness/measure/sweep.h"
#include "harness/record/record_writer.h"

namespace tigon {

struct BenchRequest {
  CheckRequest select;  // ops, passes, implementations, dtypes, axes, filter, cases, shard, seed
  SweepSize size = SweepSize::kDefault;
  double seconds_per_cell = 0;  // of timing; 0: 0.4 on a GPU, 0.1 on the host
  MeasureCell measure =
      {};           // in place of measure_cell, where kernels of other processes are among them
  int samples = 0;  // exactly so many per implementation and basis; 0: by time
  Bases bases = Bases::kAll;
  bool ceilings = true;  // measured first; without them there are no shares of them
  double budget_s = 0;   // no cell starts later than this; 0: all are measured
  // Of a run that is continued: what is not measured again. `kind` is bench, then `id` is that of
  // the cell's case, or trace.
  std::function<bool(const std::string& kind, const std::string& id)> is_recorded = {};
};

// What a bench tells as it goes.
struct BenchObserver {
  std::function<void(const std::string& kind, const Json& fields)> on_record;
  std::function<void(const std::string& label, int cells)> on_cell;  // one is done, of so many
};

// Runs the bench. A cell that crashes, hangs or fails is recorded as such and the next one follows.
// Throws UsageError before anything has run; DeviceError when not even the ceilings can be
// measured.
void run_bench(const BenchRequest& request, const BenchObserver& observer);

}  // namespace tigon
