// SPDX-License-Identifier: Apache-2.0
// Ten counters of one call and the sentence that says what binds, from Nsight Compute or from the
// host executor.
#pragma once
#include <string>
#include <vector>

#include "harness/measure/ncu.h"
#include "harness/run/check.h"

namespace tigon {

struct Counter {
  std::string name, value, note;  // note: what it would be at best, or of what it is a part
};
struct Profile {
  std::string source;  // "Nsight Compute" or "counted on the host executor: ..."
  std::vector<Counter> counters;
  std::string binds;  // one sentence
};

Profile profile_of(const Case& c, const std::vector<NcuKernel>& kernels);
// `trace` has passed.
Profile profile_of(const TraceResult& trace);

}  // namespace tigon
