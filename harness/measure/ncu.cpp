// SPDX-License-Identifier: Apache-2.0
// Nsight Compute's CSV.
#include "harness/measure/ncu.h"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace tigon {
namespace {

constexpr const char* kTime = "gpu__time_duration.sum";

// The fields of one line; quoted ones may hold commas and doubled quotes.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char ch = line[i];
    if (ch == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += ch;
      ++i;
    } else if (ch == '"') {
      quoted = !quoted;
    } else if (ch == ',' && !quoted) {
      fields.emplace_back();
    } else if (ch != '\r') {
      fields.back() += ch;
    }
  }
  return fields;
}

// "1,234.5" as a number; false for "", "n/a" and text.
bool number_of(std::string text, double* value) {
  std::erase(text, ',');
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

bool adds_up(const std::string& metric) {
  return metric.size() > 4 && metric.compare(metric.size() - 4, 4, ".sum") == 0;
}

double get(const NcuKernel& kernel, const std::string& metric, double otherwise) {
  const auto found = kernel.metrics.find(metric);
  return found == kernel.metrics.end() ? otherwise : found->second;
}

}  // namespace

std::vector<std::string> ncu_metrics() {
  return {
      kTime,
      "dram__bytes_read.sum",
      "dram__bytes_write.sum",
      "dram__throughput.avg.pct_of_peak_sustained_elapsed",
      "lts__t_sector_hit_rate.pct",
      "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
      "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
      "sm__warps_active.avg.pct_of_peak_sustained_active",
      "sm__throughput.avg.pct_of_peak_sustained_elapsed",
      "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
      "launch__registers_per_thread",
      "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
      "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
      "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
      "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
      "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
      "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
      "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
  };
}

std::vector<NcuKernel> parse_ncu(const std::string& csv) {
  std::istringstream lines(csv);
  std::vector<std::string> names;
  std::vector<NcuKernel> kernels;
  bool units = false;  // the line after the names has been read
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("==ERROR==", 0) == 0) throw std::runtime_error("ncu: " + line.substr(10));
    if (line.empty() || line[0] != '"') continue;
    const std::vector<std::string> fields = fields_of(line);
    if (fields[0] == "ID") {
      names = fields;
      units = false;
      continue;
    }
    if (names.empty()) continue;
    if (!units) {
      units = true;
      continue;
    }
    NcuKernel& kernel = kernels.emplace_back();
    for (size_t i = 0; i < fields.size() && i < names.size(); ++i) {
      double value = 0;
      if (names[i] == "Kernel Name")
        kernel.name = fields[i];
      else if (number_of(fields[i], &value))
        kernel.metrics[names[i]] = value;
    }
  }
  if (kernels.empty()) throw std::runtime_error("ncu has profiled no kernel");
  return kernels;
}

std::map<std::string, double> ncu_total(const std::vector<NcuKernel>& kernels) {
  std::map<std::string, double> total;
  for (const std::string& metric : ncu_metrics()) {
    double sum = 0, weight = 0;
    for (const NcuKernel& kernel : kernels) {
      const auto found = kernel.metrics.find(metric);
      if (found == kernel.metrics.end()) continue;
      const double w = adds_up(metric) ? 1 : get(kernel, kTime, 1);
      sum += w * found->second;
      weight += w;
    }
    if (weight > 0) total[metric] = adds_up(metric) ? sum : sum / weight;
  }
  return total;
}

}  // namespace tigon
