// SPDX-License-Identifier: Apache-2.0
// bench --impl-from.
#include "harness/plugin/measure_plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "harness/measure/device_data.h"
#include "harness/measure/memory_figures.h"
#include "harness/measure/timing.h"
#include "harness/plugin/judge_sample.h"
#include "harness/plugin/overhead_again.h"
#include "harness/plugin/secret_cases.h"
#include "harness/plugin/timed_kernel.h"
#include "harness/plugin/use_plugin.h"
#include "harness/run/check.h"
#include "harness/run/inputs/inputs.h"

namespace tigon::plugin {

namespace {

constexpr const char* kBasis = "wall";
constexpr size_t kMostSamples = 30;  // each is computed a second time in a fresh process
constexpr size_t kLeastSamples = 8;  // fewer give no 99% interval of the median

// A measurement that does not stand, and why.
struct Invalid : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Measured {
  std::vector<double> seconds;
  std::vector<uint64_t> seeds, fingerprints;
  uint64_t secret = 0;
  double overhead = 0;
  std::string verified_by;
};

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One call path for warm-up, timing and judging: whoever counts calls learns nothing.
Measured sample_kernel(TimedKernel& kernel, const Case& c, const StoppingRule& rule,
                       std::mt19937_64* random) {
  Measured m;
  m.secret = draw_secret();
  StoppingRule mine = rule;
  mine.most = std::min(rule.most, kMostSamples);
  mine.least = std::min(mine.most, kLeastSamples);
  const int64_t rows = rows_judged(c);
  TimedKernel::Sample chosen;
  const auto start = std::chrono::steady_clock::now();
  for (int i = -rule.warm_up; !mine.enough(m.seconds, since(start)); ++i) {
    const uint64_t seed = random_bits(m.secret, m.seeds.size()) >> 12;
    // Each of n samples is kept with probability 1/n: uniform without knowing how many there will
    // be.
    const bool kept = i >= 0 && rows > 0 && (*random)() % (m.seconds.size() + 1) == 0;
    TimedKernel::Sample sample = kernel.call(seed, kept);
    if (!m.fingerprints.empty() && sample.fingerprint == m.fingerprints.back())
      throw Invalid("the outputs are the same for different inputs");
    m.seeds.push_back(seed);
    m.fingerprints.push_back(sample.fingerprint);
    if (i < 0) continue;
    m.seconds.push_back(sample.seconds);
    if (!(sample.seconds > 0) && !stands_after_overhead_again(kernel, &m.seconds))
      throw Invalid("returned sooner than an empty call");
    if (kept) chosen = std::move(sample);
  }
  m.overhead = kernel.overhead();
  m.verified_by = "a fresh process";
  if (rows == 0) return m;
  if (const std::string wrong = judge_sample(c, chosen, rows, random); !wrong.empty())
    throw Invalid("outputs of a timed call: " + wrong);
  const int64_t all = c.axes.at(find_op(c.op)->axes.front().axis.symbol);
  m.verified_by +=
      rows == all ? ", the oracle" : fmt::format(", the oracle in {} of {} rows", rows, all);
  return m;
}

// The same inputs in another order in a process that has seen nothing.
void compare_with_fresh_process(const std::string& library, const KernelOf& of, const Case& c,
                                const Measured& m, std::mt19937_64* random) {
  TimedKernel fresh(library, of, c);
  std::vector<size_t> order(m.seeds.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), *random);
  for (const size_t i : order)
    if (fresh.call(m.seeds[i], false).fingerprint != m.fingerprints[i])
      throw Invalid(fmt::format(
          "outputs of call {} of {} differ from those of a fresh process on the same inputs", i + 1,
          order.size()));
}

void emit_memory(const Case& c, size_t workspace, const Emit& emit) {
  const TensorBytes tensors = tensor_bytes(c);
  Json fields = case_fields(c);
  fields.update({{"tensors_bytes", tensors.total()},
                 {"workspace_bytes", workspace},
                 {"planned_bytes", tensors.outputs + workspace},
                 {"arena_bytes", nullptr},
                 {"device_bytes", nullptr},
                 {"host_bytes", nullptr}});
  emit({{"record", "memory"}, {"fields", std::move(fields)}});
}

Json measure_kernel(const Case& c, const Ceilings& ceilings, const StoppingRule& rule,
                    const Emit& emit) {
  const auto proxy = proxy_of(c.op, c.pass, c.impl);
  const std::string library = proxy->process()->library();
  std::mt19937_64 random(draw_secret());
  TimedKernel kernel(library, proxy->kernel(), c);
  emit_memory(c, kernel.workspace_bytes(), emit);
  const Measured m = sample_kernel(kernel, c, rule, &random);
  compare_with_fresh_process(library, proxy->kernel(), c, m, &random);
  Json fields =
      bench_fields(c, {.impl = c.impl, .basis = kBasis, .samples = m.seconds}, 1, ceilings);
  fields["overhead_s"] = m.overhead;
  fields["secret_seed"] = m.secret;
  fields["verified_by"] = m.verified_by;
  return fields;
}

// Its record; also when it does not stand.
Json result_of(const Case& c, const Ceilings& ceilings, const StoppingRule& rule,
               const Emit& emit) {
  const auto without = [&](const char* verdict, const std::string& reason) {
    return bench_without_samples(c, kBasis, verdict, reason);
  };
  try {
    return measure_kernel(c, ceilings, rule, emit);
  } catch (const Invalid& e) {
    return without("invalid", e.what());
  } catch (const ImplementationFault& e) {
    return without(name_of(e.verdict), e.what());
  } catch (const DeviceOutOfMemory& e) {
    return without("oom", e.what());
  }
}

// One of ours on a GPU by the clock of plug-ins, so that the two can be compared: new contents,
// caches flushed, from the call until the device has finished, less what an empty call costs.
Json ours_by_wall(const Case& c, const Ceilings& ceilings, const StoppingRule& rule) {
  CallSet set(c);
  const Implementation* ours = find_implementation(*find_pass(*find_op(c.op), c.pass), c.impl);
  const size_t workspace = ours->workspace ? ours->workspace(c.dtype, set.bound()) : 0;
  const Contender contender{c, ours, DeviceBuffer(workspace)};
  if (ours->prepare) ours->prepare(c.dtype, set.with_scratch(contender.scratch));
  const DeviceBuffer flush(2 * device_info().l2_bytes);
  const auto seconds_of = [&](const auto& work) {
    set.fill_inputs(random_bits(c.seed, rule.most) >> 12);
    set.poison_outputs();
    if (flush.bytes() > 0) flush_caches(flush.data(), flush.bytes(), nullptr);
    device_synchronize();
    const auto start = std::chrono::steady_clock::now();
    work();
    device_synchronize();
    return since(start);
  };
  std::vector<double> empty(kMostSamples), seconds;
  for (double& s : empty) s = seconds_of([] {});
  const double overhead = summarize(empty).median;
  const auto start = std::chrono::steady_clock::now();
  for (int i = -rule.warm_up; !rule.enough(seconds, since(start)); ++i) {
    const double s = seconds_of([&] { call_once(contender, set, nullptr); }) - overhead;
    if (i >= 0) seconds.push_back(s);
  }
  Json fields = bench_fields(c, {.impl = c.impl, .basis = kBasis, .samples = seconds}, 1, ceilings);
  fields["overhead_s"] = overhead;
  return fields;
}

}  // namespace

void measure_cell(const Cell& cell, const Ceilings& ceilings, const StoppingRule& rule,
                  const Emit& emit) {
  Cell ours = cell;
  std::erase_if(ours.implementations, is_plugin);
  if (!ours.implementations.empty()) {
    ours.c.impl = ours.implementations.front();
    tigon::measure_cell(ours, ceilings, rule, emit);
  }
  if (default_executor() == "cuda")
    for (const std::string& name : ours.implementations) {
      Case c = cell.c;
      c.impl = name;
      try {
        emit({{"record", "bench"}, {"fields", ours_by_wall(c, ceilings, rule)}});
      } catch (const DeviceOutOfMemory&) {
        // measure_cell has said so
      }
    }
  for (const std::string& name : cell.implementations) {
    if (!is_plugin(name)) continue;
    Case c = cell.c;
    c.impl = name;
    emit({{"record", "bench"}, {"fields", result_of(c, ceilings, rule, emit)}});
  }
}

}  // namespace tigon::plugin
