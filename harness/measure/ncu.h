// SPDX-License-Identifier: Apache-2.0
// Nsight Compute's counters of one call: which are asked for, and what its CSV says.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace tigon {

// Metric names for ncu --metrics.
std::vector<std::string> ncu_metrics();

// One kernel launch of `ncu --csv --page raw --print-units base`.
struct NcuKernel {
  std::string name;
  std::map<std::string, double> metrics;  // by ncu's name; one that has no number is absent
};

// Reads that CSV: a line of names, a line of units, a line for each launch; lines of ncu itself
// ("==PROF== ...") are passed over. Throws std::runtime_error, one line, when there is no launch or
// ncu says that it failed.
std::vector<NcuKernel> parse_ncu(const std::string& csv);

// All launches of a call as one: sums of what adds up, the rest weighted by time. NaN: not
// measured.
std::map<std::string, double> ncu_total(const std::vector<NcuKernel>& kernels);

}  // namespace tigon
