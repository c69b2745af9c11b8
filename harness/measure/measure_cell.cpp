// SPDX-License-Identifier: Apache-2.0
// Measures one cell in this process.
#include "harness/measure/measure_cell.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/measure/benchmark_bridge.h"
#include "harness/measure/memory_figures.h"
#include "harness/measure/roofline.h"
#include "harness/measure/timing.h"
#include "harness/measure/verify.h"
#include "harness/measure/yardstick.h"
#include "kernels/device/nvtx.h"

namespace tigon {
namespace {

// The oracle then takes a tenth of a second; a host's cells are small, and many.
constexpr int64_t kVerifiedOnGpu = int64_t{1} << 19, kVerifiedOnHost = int64_t{1} << 16;
constexpr double kUsableMemory = 0.9;  // of what is free: allocations are rounded up

void emit_record(const Emit& emit, const char* kind, Json fields) {
  emit({{"record", kind}, {"fields", std::move(fields)}});
}

size_t usable_bytes() {
  return static_cast<size_t>(kUsableMemory * static_cast<double>(device_free_bytes()));
}

// Fields of a "bench" record that hold for every verdict.
Json bench_head(const Case& c, const char* basis) {
  Json fields = case_fields(c);
  fields["basis"] = basis;
  fields["executor"] = default_executor();
  return fields;
}

// The yardstick's timing among those of one basis; nothing where it was not timed.
std::optional<YardstickTime> yardstick_time(const std::vector<Timing>& timings,
                                            const std::string& basis) {
  for (const Timing& timing : timings)
    if (timing.basis == basis && is_yardstick(timing.impl) && !timing.samples.empty())
      return YardstickTime{timing.impl, summarize(timing.samples).median};
  return std::nullopt;
}

// The timings of a cell through Google Benchmark into records.
void report(const std::vector<Timing>& timings, const std::vector<Contender>& contenders,
            size_t sets, const Ceilings& ceilings, const Emit& emit) {
  std::vector<BenchmarkEntry> entries;
  std::vector<Json> records;
  for (size_t i = 0; i < timings.size(); ++i) {
    const Case& c = contenders[i % contenders.size()].c;
    if (is_yardstick(c.impl)) continue;
    records.push_back(timings[i].samples.empty()
                          ? bench_without_samples(c, timings[i].basis.c_str(), timings[i].verdict,
                                                  timings[i].reason)
                          : bench_fields(c, timings[i], sets, ceilings,
                                         yardstick_time(timings, timings[i].basis)));
    entries.push_back({case_id(c) + "/" + timings[i].basis,
                       timings[i].samples,
                       timings[i].reason,
                       {{"bytes", minimum_bytes(c)}, {"flop", flops_of(c)}}});
  }
  run_benchmarks(entries, [&](size_t i, double) { emit_record(emit, "bench", records[i]); });
}

// An unfused baseline allocates its intermediates itself and says so when it cannot (device_alloc).
const char* verdict_of(const Status& status) {
  if (status.code == Status::kUnsupported) return "unsupported";
  const bool no_memory = std::string_view(status.reason).find("cannot allocate") == 0;
  return no_memory ? "oom" : "runtime_error";
}

// Memory of an implementation, and its workspace for the timings; nothing when it does not fit or
// refuses, which is recorded.
std::optional<Contender> admit(const Case& c, const CallSet& set, const Emit& emit) {
  const Implementation* implementation =
      find_implementation(*find_pass(*find_op(c.op), c.pass), c.impl);
  const auto refuse = [&](const char* verdict, const std::string& reason) {
    emit_record(emit, "bench", bench_without_samples(c, main_basis(), verdict, reason));
    return std::nullopt;
  };
  try {
    const size_t workspace =
        implementation->workspace ? implementation->workspace(c.dtype, set.bound()) : 0;
    if (workspace > usable_bytes())
      return refuse("oom", fmt::format("needs a workspace of {} bytes; {} are free", workspace,
                                       device_free_bytes()));
    Json memory;
    const Status status = memory_figures(c, *implementation, set, &memory);
    if (!status.ok()) return refuse(verdict_of(status), status.reason);
    emit_record(emit, "memory", std::move(memory));
    return Contender{c, implementation, DeviceBuffer(workspace)};
  } catch (const DeviceOutOfMemory& error) {
    return refuse("oom", error.what());
  }
}

// Replays are as long as cold times tell; three of those are enough for that alone.
std::vector<Timing> time_all(std::vector<Contender>& contenders, Rotation& rotation,
                             const StoppingRule& rule, Bases bases) {
  if (!on_gpu()) return time_wall(contenders, rotation, rule);
  const StoppingRule few = {.warm_up = 1, .least = 3, .most = 3};
  std::vector<Timing> timings =
      time_cold(contenders, rotation, bases == Bases::kGraph ? few : rule);
  if (bases == Bases::kCold) return timings;
  std::vector<double> medians;
  for (const Timing& timing : timings) medians.push_back(summarize(timing.samples).median);
  const std::vector<Timing> graph = time_graph(contenders, rotation, medians, rule);
  if (bases == Bases::kGraph) return graph;
  timings.insert(timings.end(), graph.begin(), graph.end());
  return timings;
}

// Of the yardstick nothing is asked.
void verify(const std::vector<Contender>& contenders, CallSet& set, std::vector<Timing>* timings) {
  const Verification verification(set.of(), set, on_gpu() ? kVerifiedOnGpu : kVerifiedOnHost);
  for (size_t i = 0; i < contenders.size(); ++i) {
    std::vector<Timing*> of_contender;  // on every basis
    for (size_t k = i; k < timings->size(); k += contenders.size())
      of_contender.push_back(&(*timings)[k]);
    if (!is_yardstick(contenders[i].c.impl)) verification.judge(contenders[i], set, of_contender);
  }
}

}  // namespace

const char* main_basis() { return on_gpu() ? "cold" : "wall"; }

Json bench_fields(const Case& c, const Timing& timing, size_t sets, const Ceilings& ceilings,
                  const std::optional<YardstickTime>& yardstick) {
  const Summary s = summarize(timing.samples);
  const double bytes = minimum_bytes(c), flop = flops_of(c);
  const Roofline r = roofline_of(s.median, bytes, flop, least_flops_of(c), c.dtype, ceilings);
  const bool impossible = timing.verdict == "passed" && !r.impossible.empty();
  Json fields = bench_head(c, timing.basis.c_str());
  fields.update({{"median_s", s.median},
                 {"q1_s", s.q1},
                 {"q3_s", s.q3},
                 {"min_s", s.min},
                 {"max_s", s.max},
                 {"n", s.n},
                 {"samples_s", timing.samples},
                 {"bytes_min_bytes", bytes},
                 {"flop", flop},
                 {"bandwidth_bytes_per_s", r.bandwidth},
                 {"flop_rate_per_s", r.flop_rate},
                 {"share_of_copy", r.share_of_copy},
                 {"share_of_gemm", r.share_of_gemm},
                 {"bound", r.memory_bound ? "memory" : "compute"},
                 {"sets", sets},
                 {"verified_by", timing.verified_by},
                 {"not_verified", timing.not_verified},
                 {"verdict", impossible ? "invalid" : timing.verdict},
                 {"reason", impossible ? r.impossible : timing.reason}});
  if (yardstick)
    fields.update({{"yardstick", yardstick->name},
                   {"yardstick_s", yardstick->median_s},
                   {"share_of_yardstick", yardstick->median_s / s.median}});
  return fields;
}

Json bench_without_samples(const Case& c, const char* basis, const std::string& verdict,
                           const std::string& reason) {
  Json fields = bench_head(c, basis);
  for (const char* key : {"median_s", "q1_s", "q3_s", "min_s", "max_s"}) fields[key] = nullptr;
  fields.update({{"n", 0},
                 {"samples_s", Json::array()},
                 {"bytes_min_bytes", minimum_bytes(c)},
                 {"flop", flops_of(c)},
                 {"bandwidth_bytes_per_s", nullptr},
                 {"flop_rate_per_s", nullptr},
                 {"share_of_copy", nullptr},
                 {"share_of_gemm", nullptr},
                 {"bound", "memory"},
                 {"sets", 0},
                 {"verdict", verdict},
                 {"reason", reason}});
  return fields;
}

void measure_cell(const Cell& cell, const Ceilings& ceilings, const StoppingRule& rule,
                  const Emit& emit, Bases bases) {
  std::vector<Case> cases;
  for (const std::string& name : cell.implementations) {
    cases.push_back(cell.c);
    cases.back().impl = name;
  }
  const size_t one = tensor_bytes(cell.c).total();
  if (one > usable_bytes()) {
    const std::string reason =
        fmt::format("its tensors have {} bytes; {} are free", one, device_free_bytes());
    for (const Case& c : cases)
      emit_record(emit, "bench", bench_without_samples(c, main_basis(), "oom", reason));
    return;
  }
  std::vector<Contender> contenders;
  {
    const ProfilerRange range("setup", case_id(cell.c));
    CallSet set(cell.c);
    set.fill_inputs(cell.c.seed);
    for (const Case& c : cases)
      if (std::optional<Contender> contender = admit(c, set, emit))
        contenders.push_back(std::move(*contender));
  }
  if (contenders.empty()) return;
  const size_t least = on_gpu() ? 5 * device_info().l2_bytes : 0;
  Rotation rotation(cell.c, least, usable_bytes());
  std::optional<Yardstick> yardstick;
  if (on_gpu()) yardstick = Yardstick::of(cell.c, rotation.size(), usable_bytes());
  if (yardstick) contenders.push_back(yardstick->contender(cell.c));
  std::vector<Timing> timings = time_all(contenders, rotation, rule, bases);
  verify(contenders, rotation[0], &timings);
  report(timings, contenders, rotation.size(), ceilings, emit);
}

}  // namespace tigon
