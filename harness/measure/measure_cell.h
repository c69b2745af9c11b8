// SPDX-License-Identifier: Apache-2.0
// Measures one cell in this process: memory, times on every basis, and what follows from them.
#pragma once
#include <functional>
#include <optional>

#include "harness/measure/ceilings.h"
#include "harness/measure/run_in_child.h"
#include "harness/measure/statistics.h"
#include "harness/measure/sweep.h"
#include "harness/measure/timing.h"

namespace tigon {

// Which times are taken on a GPU.
enum class Bases { kAll, kCold, kGraph };

// Emits {"record": kind, "fields": {...}} for every "memory" and "bench" record. A cell or an
// implementation that does not fit in memory gets the verdict oom. Throws DeviceError.
void measure_cell(const Cell& cell, const Ceilings& ceilings, const StoppingRule& rule,
                  const Emit& emit, Bases bases = Bases::kAll);

// Another way to measure a cell. A line without "record" is a sign of life: the parent waits on.
using MeasureCell =
    std::function<void(const Cell&, const Ceilings&, const StoppingRule&, const Emit&)>;

// The time of a yardstick (yardstick.h) on one basis.
struct YardstickTime {
  std::string name;
  double median_s = 0;
};

// The fields of a bench record. A time above a ceiling of the run makes it invalid.
Json bench_fields(const Case& c, const Timing& timing, size_t sets, const Ceilings& ceilings,
                  const std::optional<YardstickTime>& yardstick = {});

// The record of an implementation that could not be timed.
Json bench_without_samples(const Case& c, const char* basis, const std::string& verdict,
                           const std::string& reason);

// Basis of the headline figure on this executor: "cold" on a GPU, "wall" on the host.
const char* main_basis();

}  // namespace tigon
