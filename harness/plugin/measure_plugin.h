// SPDX-License-Identifier: Apache-2.0
// bench --impl-from: how a cell with plug-in kernels is measured.
#pragma once
#include "harness/measure/measure_cell.h"

namespace tigon::plugin {

// Our implementations of the cell by tigon::measure_cell, on a GPU also by the clock of plug-ins;
// the plug-in's one by one: every call on contents that it has not seen, timed by our clock;
// afterwards each call's outputs are compared with those of a fresh process, and one call's with
// the oracle, in a sample of its rows where all would take longer than seconds. A measurement that
// does not stand gets the verdict invalid.
void measure_cell(const Cell& cell, const Ceilings& ceilings, const StoppingRule& rule,
                  const Emit& emit);

}  // namespace tigon::plugin
