// SPDX-License-Identifier: Apache-2.0
// Google Benchmark as the carrier of measurements.
#include "harness/measure/benchmark_bridge.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace tigon {
namespace {

// Hands every run on by its number; iteration runs only, no aggregates.
class Reporter : public benchmark::BenchmarkReporter {
 public:
  explicit Reporter(const std::function<void(size_t, double)>& report) : report_(report) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const double iterations = static_cast<double>(std::max<int64_t>(1, run.iterations));
      report_(reported_++, run.real_accumulated_time / iterations);
    }
  }
  size_t reported() const { return reported_; }

 private:
  const std::function<void(size_t, double)>& report_;
  size_t reported_ = 0;
};

void replay(benchmark::State& state, const BenchmarkEntry& entry) {
  if (entry.samples.empty()) {
    state.SkipWithError(entry.error.c_str());
    return;
  }
  size_t i = 0;
  for (auto _ : state) state.SetIterationTime(entry.samples[i++]);
  for (const auto& [name, value] : entry.counters) state.counters[name] = value;
}

}  // namespace

void run_benchmarks(const std::vector<BenchmarkEntry>& entries,
                    const std::function<void(size_t, double)>& report) {
  for (const BenchmarkEntry& entry : entries)
    benchmark::RegisterBenchmark(entry.name.c_str(),
                                 [&entry](benchmark::State& state) { replay(state, entry); })
        ->UseManualTime()
        ->Iterations(std::max<benchmark::IterationCount>(
            1, static_cast<benchmark::IterationCount>(entry.samples.size())));
  Reporter reporter(report);
  benchmark::RunSpecifiedBenchmarks(&reporter, ".");
  benchmark::ClearRegisteredBenchmarks();
  if (reporter.reported() != entries.size())
    throw std::logic_error(fmt::format("Google Benchmark ran {} of {} measurements",
                                       reporter.reported(), entries.size()));
}

}  // namespace tigon
