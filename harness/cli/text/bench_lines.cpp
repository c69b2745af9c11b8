// SPDX-License-Identifier: Apache-2.0
// What tigon bench prints of its records.
#include "harness/cli/text/bench_lines.h"

#include <fmt/format.h>

#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

std::string percent(const Json& share) {
  return share.is_number() ? fmt::format("{:.1f}%", 100 * share.get<double>()) : "-";
}

// "op/pass/dtype/axes", without the implementation and what is the same everywhere.
std::string cell_name(const Json& r) {
  std::string axes;
  for (const auto& [name, value] : r["axes"].items())
    axes += fmt::format("{}{}={}", axes.empty() ? "" : ",", name, value.get<int64_t>());
  return fmt::format("{}/{}/{}/{}", r["op"].get<std::string>(), r["pass"].get<std::string>(),
                     r["dtype"].get<std::string>(), axes);
}

std::string beside_yardstick(const Json& r) {
  if (!r.contains("yardstick")) return "";
  return fmt::format(" {:>6} of {}", percent(r["share_of_yardstick"]),
                     r["yardstick"] == "copy" ? "a copy of its bytes" : "its products alone");
}

// The outputs that no oracle was asked about.
std::string not_verified(const Json& r) {
  const auto found = r.find("not_verified");
  if (found == r.end() || found->get<std::string>().empty()) return "";
  return "  not verified: " + found->get<std::string>();
}

std::string time_line(const Json& r) {
  const std::string head = fmt::format("{:<52} {:<8} {:<5}", cell_name(r),
                                       r["impl"].get<std::string>(), r["basis"].get<std::string>());
  const std::string verdict = r["verdict"];
  if (verdict != "passed")
    return fmt::format("{} {}: {}", head, colored(verdict, Color::kYellow),
                       r["reason"].get<std::string>());
  const std::string time =
      fmt::format("{} {:>9} ({:>9} .. {:>9})", head, show_seconds(r["median_s"]),
                  show_seconds(r["q1_s"]), show_seconds(r["q3_s"]));
  const std::string left = not_verified(r);
  if (r["executor"] == "external") return time + "  on this CPU, not kernel speed" + left;
  if (r["executor"] != "cuda") return time + "  host executor, not kernel speed" + left;
  return fmt::format("{} {:>10} {:>6} of copy {:>12} {:>6} of GEMM{}{}", time,
                     show_rate(r["bandwidth_bytes_per_s"], "B/s"), percent(r["share_of_copy"]),
                     show_rate(r["flop_rate_per_s"], "FLOP/s"), percent(r["share_of_gemm"]),
                     beside_yardstick(r), left);
}

std::string memory_line(const Json& r) {
  const auto figure = [&](const char* key) {
    return r[key].is_number() ? show_bytes(r[key].get<double>()) : std::string("-");
  };
  return fmt::format("{:<52} {:<8} memory: tensors {}, planned {}, arena {}, device {}, host {}",
                     cell_name(r), r["impl"].get<std::string>(), figure("tensors_bytes"),
                     figure("planned_bytes"), figure("arena_bytes"), figure("device_bytes"),
                     figure("host_bytes"));
}

std::string trace_line(const Json& r) {
  const std::string head =
      fmt::format("{:<52} {:<8} traffic", cell_name(r), r["impl"].get<std::string>());
  if (r["verdict"] != "passed")
    return fmt::format("{} {}: {}", head, r["verdict"].get<std::string>(),
                       r["reason"].get<std::string>());
  const double moved =
      r["bytes_loaded_bytes"].get<double>() + r["bytes_stored_bytes"].get<double>();
  const Json& ratio = r["traffic_ratio"];
  return fmt::format("{} {} of at least {} ({:.4g} times)", head, show_bytes(moved),
                     show_bytes(r["bytes_min_bytes"]),
                     ratio.is_number() ? ratio.get<double>() : 0.0);
}

std::string accuracy_line(const Json& r) {
  std::string line =
      fmt::format("{:<52} {:<8} error  ", cell_name(r), r["impl"].get<std::string>());
  if (r["verdict"] != "passed")
    return fmt::format("{}{}: {}", line, r["verdict"].get<std::string>(),
                       r["reason"].get<std::string>());
  const auto number = [](const Json& value) {
    return value.is_number() ? fmt::format("{:.3g}", value.get<double>()) : "nan";
  };
  for (const Json& output : r["outputs"])
    line += fmt::format("{} {} of the budget (relative L2 {}); ", output["name"].get<std::string>(),
                        number(output["error_over_budget"]), number(output["relative_l2"]));
  return line;
}

}  // namespace

std::string bench_line(const std::string& kind, const Json& r) {
  if (kind == "bench") return time_line(r);
  if (kind == "memory") return memory_line(r);
  if (kind == "trace") return trace_line(r);
  if (kind == "accuracy") return accuracy_line(r);
  return fmt::format("ceiling {:<10} {}", r["name"].get<std::string>(),
                     show_rate(r["value"], r["unit"] == "bytes_per_s" ? "B/s" : "FLOP/s"));
}

}  // namespace tigon::cli
