// tigon check --trace: counted memory traffic of each kernel beside the least bytes.
#include <fmt/format.h>

#include "harness/cli/stages.h"
#include "harness/cli/terminal.h"

namespace tigon::cli {
namespace {

void print_counters(const std::string& name, const Json& c) {
  const double sectors = c["sectors"], requests = c["requests"];
  fmt::print("  {:<40} {:>11} {:>11} {:>9.0f} {:>11.3g} {:>9.0f} {:>9.0f} {:>9.0f}\n",
             name.substr(0, 40), show_bytes(c["bytes_loaded_bytes"]),
             show_bytes(c["bytes_stored_bytes"]), sectors, requests > 0 ? sectors / requests : 0.0,
             c["bank_conflicts"].get<double>(), c["barriers"].get<double>(),
             c["atomics"].get<double>());
}

void print_trace(const Json& t) {
  fmt::print("{}\n", t["case_id"].get<std::string>());
  if (t["verdict"] != "passed") {
    fmt::print("  {}: {}\n", t["verdict"].get<std::string>(), t["reason"].get<std::string>());
    return;
  }
  fmt::print("  {:<40} {:>11} {:>11} {:>9} {:>11} {:>9} {:>9} {:>9}\n", "kernel", "loaded",
             "stored", "sectors", "per request", "conflicts", "barriers", "atomics");
  for (const Json& kernel : t["kernels"])
    print_counters(
        fmt::format("{} x{}", kernel["name"].get<std::string>(), kernel["launches"].get<int64_t>()),
        kernel);
  print_counters("all", t);
  fmt::print("  least bytes {}; moved {:.4g} times as many\n", show_bytes(t["bytes_min_bytes"]),
             t["traffic_ratio"].is_number() ? t["traffic_ratio"].get<double>() : 0.0);
}

}  // namespace

int trace_stage(Session& session, const CheckOptions& options) {
  const CheckRequest request = request_of(options.select);
  const Exclusion excluded(options.select.exclude);
  Tally tally;
  for (const Cell& cell : sweep_cells(request, SweepSize::kQuick, true))
    for (const std::string& name : cell.implementations) {
      Case c = cell.c;
      c.impl = name;
      const bool asked = !options.select.implementations.empty() || !options.select.cases.empty();
      if ((name == "naive" && !asked) || excluded(case_id(c)) || interrupted()) continue;
      if (const Json* sealed =
              session.resumed() ? session.resumed()->find("trace", case_id(c)) : nullptr) {
        const auto verdict = parse_verdict(sealed->value("verdict", ""));
        session.count(verdict.value_or(Verdict::kRuntimeError));
        tally.add(verdict.value_or(Verdict::kRuntimeError));
        continue;
      }
      const TraceResult trace = run_trace(c, request.timeout_s);
      const Json fields = to_json(trace);
      session.record("trace", fields);
      session.count(trace.verdict);
      tally.add(trace.verdict);
      print_trace(without_nonfinite(fields));
    }
  return tally.exit_code();
}

}  // namespace tigon::cli
