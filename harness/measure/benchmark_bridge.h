// SPDX-License-Identifier: Apache-2.0
// Google Benchmark as the carrier of measurements: each timing is registered at run time with
// manual time and as many iterations as our stopping rule took samples, and reported through our
// reporter.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tigon {

struct BenchmarkEntry {
  std::string name;             // a case id and a basis
  std::vector<double> samples;  // seconds
  std::string error;            // shown in place of a time
  std::map<std::string, double> counters;
};

// Runs the entries through Google Benchmark; report(i, mean seconds of one iteration) is called for
// every entry in order. Filters of Google Benchmark (BENCHMARK_FILTER) do not apply. Throws
// std::logic_error when Google Benchmark ran fewer than it was given, which it does not tell by
// itself.
void run_benchmarks(const std::vector<BenchmarkEntry>& entries,
                    const std::function<void(size_t, double)>& report);

}  // namespace tigon
