// SPDX-License-Identifier: Apache-2.0
// Which counters are shown of a call, and what they mean.
#include "harness/measure/profile.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "harness/run/judging/kernel_total.h"

namespace tigon {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSectorBytes = 32;
constexpr double kNear = 70;         // percent of a peak that count as reaching it
constexpr double kMuchMore = 1.15;   // bytes beyond the least that are worth a word
constexpr double kMatrixWork = 100;  // operations per least byte from which tensor cores matter

std::string number(double v, const char* unit = "") {
  return std::isnan(v) ? "not measured" : fmt::format("{:.4g}{}", v, unit);
}

std::string times_the_least(double bytes, double least) {
  return least > 0 && !std::isnan(bytes)
             ? fmt::format("{:.3g} times the least, {:.4g} MB", bytes / least, least / 1e6)
             : "";
}

struct Stall {
  const char* metric;
  const char* what;
};
constexpr Stall kStalls[] = {
    {"long_scoreboard", "waiting for global memory"},
    {"short_scoreboard", "waiting for shared memory or special functions"},
    {"barrier", "waiting at barriers"},
    {"mio_throttle", "queueing for shared memory and special functions"},
    {"lg_throttle", "queueing for global memory: too many small accesses"},
    {"math_pipe_throttle", "queueing for arithmetic"},
    {"wait", "fixed latency of arithmetic"},
};

// Metrics of all kernels of the call.
class Totals {
 public:
  explicit Totals(const std::vector<NcuKernel>& kernels) : all_(ncu_total(kernels)) {}
  double operator()(const std::string& metric) const {
    const auto found = all_.find(metric);
    return found == all_.end() ? kNan : found->second;
  }
  // The reason that most warps wait for, and how many do for each instruction issued.
  std::pair<const Stall*, double> worst_stall() const {
    std::pair<const Stall*, double> worst = {nullptr, 0};
    for (const Stall& s : kStalls) {
      const double v = (*this)(
          fmt::format("smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", s.metric));
      if (v > worst.second) worst = {&s, v};
    }
    return worst;
  }

 private:
  std::map<std::string, double> all_;
};

std::string what_binds(const Totals& t, bool matrix, double moved, double least) {
  const double dram = t("dram__throughput.avg.pct_of_peak_sustained_elapsed");
  const double tensor = t("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active");
  const double sm = t("sm__throughput.avg.pct_of_peak_sustained_elapsed");
  const auto [stall, warps] = t.worst_stall();
  if (dram >= kNear && moved > kMuchMore * least)
    return fmt::format(
        "DRAM binds ({:.0f}% of its peak), and {:.2g} times the least bytes go through "
        "it: move less.",
        dram, moved / least);
  if (dram >= kNear)
    return fmt::format("DRAM binds: {:.0f}% of its peak, and little more than the least bytes.",
                       dram);
  if (matrix && tensor >= kNear) return fmt::format("The tensor pipe binds: {:.0f}% busy.", tensor);
  if (sm >= kNear)
    return fmt::format(
        "The SMs bind: {:.0f}% of their peak, DRAM {:.0f}%; fewer instructions help.", sm, dram);
  if (stall != nullptr)
    return fmt::format(
        "Latency binds: no unit is near its peak (DRAM {:.0f}%, SM {:.0f}%); most warps "
        "are {} ({:.2g} for each instruction issued).",
        dram, sm, stall->what, warps);
  return "Nothing measured says what binds.";
}

}  // namespace

Profile profile_of(const Case& c, const std::vector<NcuKernel>& kernels) {
  const Totals t(kernels);
  const double least = minimum_bytes(c);
  const double moved = t("dram__bytes_read.sum") + t("dram__bytes_write.sum");
  const bool matrix = least > 0 && flops_of(c) / least >= kMatrixWork;
  const auto [stall, warps] = t.worst_stall();
  Profile p;
  p.source = fmt::format("Nsight Compute, {} kernel{}, caches cold", kernels.size(),
                         kernels.size() == 1 ? "" : "s");
  p.counters = {
      {"time of the kernels", number(t("gpu__time_duration.sum") / 1e3, " µs"),
       "at the profiler's clocks: no measurement of speed"},
      {"DRAM bytes", number(moved / 1e6, " MB"), times_the_least(moved, least)},
      {"DRAM, share of peak", number(t("dram__throughput.avg.pct_of_peak_sustained_elapsed"), "%"),
       ""},
      {"L2 hit rate", number(t("lts__t_sector_hit_rate.pct"), "%"), ""},
      {"sectors per load request",
       number(t("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio")),
       "4 for 4 bytes a lane, 16 for 16"},
      {"sectors per store request",
       number(t("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio")), ""},
      {"occupancy", number(t("sm__warps_active.avg.pct_of_peak_sustained_active"), "%"),
       "registers a thread: " + number(t("launch__registers_per_thread"))},
      {"SM, share of peak", number(t("sm__throughput.avg.pct_of_peak_sustained_elapsed"), "%"), ""},
      {"largest stall", stall == nullptr ? "not measured" : stall->metric,
       stall == nullptr ? "" : fmt::format("{}, {:.2g} warps for each issue", stall->what, warps)},
      matrix ? Counter{"tensor pipe busy",
                       number(t("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
                              "%"),
                       ""}
             : Counter{"shared-memory bank conflicts",
                       number(t("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum")), ""},
  };
  p.binds = what_binds(t, matrix, moved, least);
  return p;
}

Profile profile_of(const TraceResult& trace) {
  const KernelTrace sum = total(trace.kernels);
  const double moved = sum.bytes_loaded + sum.bytes_stored, least = trace.bytes_min;
  const double used = sum.sectors > 0 ? 100 * moved / (sum.sectors * kSectorBytes) : kNan;
  const double intensity = least > 0 ? flops_of(trace.c) / least : kNan;
  const KernelTrace* line = trace.lines.empty() ? nullptr : &trace.lines.front();
  Profile p;
  p.source = "counted on the host executor: no times, no caches, no occupancy, no stalls";
  p.counters = {
      {"global bytes loaded", number(sum.bytes_loaded / 1e6, " MB"), ""},
      {"global bytes stored", number(sum.bytes_stored / 1e6, " MB"), ""},
      {"global bytes", number(moved / 1e6, " MB"), times_the_least(moved, least)},
      {"warp requests", number(sum.requests), ""},
      {"sectors per request", number(sum.requests > 0 ? sum.sectors / sum.requests : kNan),
       "4 for 4 bytes a lane, 16 for 16"},
      {"bytes used of sectors", number(used, "%"), ""},
      {"shared-memory bank conflicts", number(sum.bank_conflicts), ""},
      {"barriers", number(sum.barriers), "of all blocks"},
      {"atomics", number(sum.atomics), "of all threads"},
      {"operations per least byte", number(intensity), fmt::format("{} launches", sum.launches)},
  };
  if (moved > kMuchMore * least && line != nullptr)
    p.binds = fmt::format(
        "Memory, {:.2g} times what it must be (caches may hide a part): most is moved "
        "at {}.",
        moved / least, line->name);
  else if (used < kNear)
    p.binds = fmt::format(
        "Memory, and only {:.0f}% of each sector is used: neighbouring lanes should "
        "take neighbouring bytes.",
        used);
  else if (intensity >= kMatrixWork)
    p.binds =
        fmt::format("Arithmetic: {:.0f} operations for each byte that must be moved.", intensity);
  else
    p.binds = fmt::format(
        "Memory, as it should: {:.2g} operations for each byte, and the bytes are "
        "the least.",
        intensity);
  return p;
}

}  // namespace tigon
