// SPDX-License-Identifier: Apache-2.0
// tigon trace and tigon check --trace: counted memory traffic beside the least bytes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "harness/cli/commands.h"

#include "harness/cli/stages.h"
#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

void print_counters(const std::string& name, const Json& c) {
  constexpr size_t kWidth = 48;
  const double sectors = c["sectors"], requests = c["requests"];
  const bool fits = name.size() <= kWidth;
  if (!fits) fmt::print("  {}\n", name);
  fmt::print("  {:<48} {:>11} {:>11} {:>9.0f} {:>11.3g} {:>9.0f} {:>9.0f} {:>9.0f}\n",
             fits ? name : "", show_bytes(c["bytes_loaded_bytes"]),
             show_bytes(c["bytes_stored_bytes"]), sectors, requests > 0 ? sectors / requests : 0.0,
             c["bank_conflicts"].get<double>(), c["barriers"].get<double>(),
             c["atomics"].get<double>());
}

void print_heading(const char* what) {
  fmt::print("  {:<48} {:>11} {:>11} {:>9} {:>11} {:>9} {:>9} {:>9}\n", what, "loaded", "stored",
             "sectors", "per request", "conflicts", "barriers", "atomics");
}

// The text of "kernels/rope/rope.cu:88", from the tree that this program was built from.
std::string line_text(const std::string& place) {
  namespace fs = std::filesystem;
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos) return "";
  const fs::path root = fs::read_symlink("/proc/self/exe").parent_path() / "../../..";
  std::ifstream file(root / place.substr(0, colon));
  std::string text;
  for (int line = std::atoi(place.c_str() + colon + 1); line > 0; --line)
    if (!std::getline(file, text)) return "";
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

void print_trace(const Json& t) {
  fmt::print("{}\n", t["case_id"].get<std::string>());
  if (t["verdict"] != "passed") {
    fmt::print("  {}: {}\n", t["verdict"].get<std::string>(), t["reason"].get<std::string>());
    return;
  }
  print_heading("kernel");
  for (const Json& kernel : t["kernels"])
    print_counters(
        fmt::format("{} x{}", kernel["name"].get<std::string>(), kernel["launches"].get<int64_t>()),
        kernel);
  print_counters("all", t);
  fmt::print("  least bytes {}; moved {:.4g} times as many\n", show_bytes(t["bytes_min_bytes"]),
             t["traffic_ratio"].is_number() ? t["traffic_ratio"].get<double>() : 0.0);
}

// What each line of the source moves, the most bytes first, and the tensors that must be moved.
void print_lines(const TraceResult& trace, const Json& t) {
  print_heading("source line");
  for (const Json& line : t["lines"]) {
    const auto place = line["name"].get<std::string>();
    print_counters(place, line);
    if (const std::string text = line_text(place); !text.empty()) fmt::print("      {}\n", text);
  }
  fmt::print("  least bytes by tensor:");
  const Pass* pass = find_pass(*find_op(trace.c.op), trace.c.pass);
  const Binding binding = binding_of(trace.c, *find_op(trace.c.op), *pass);
  for (const TensorInfo& tensor : pass->tensors) {
    if (is_left_out(tensor, trace.c.options)) continue;
    auto bytes = static_cast<double>(size_of(tensor.dtype.at(trace.c.dtype)));
    for (const Expr& size : tensor.shape) bytes *= size(binding);
    fmt::print(" {} {}", tensor.name, show_bytes(bytes));
  }
  fmt::print("\n");
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
      if (const Json* sealed = session.resumed()
                                   ? session.resumed()->find("trace", {{"case_key", case_key(c)}})
                                   : nullptr) {
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

void add_trace(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon trace 'rms_norm/forward/fused/bf16/T=16,H=4096'\n"
      "  ./tigon check --trace rms_norm                 every pass and dtype, by kernel only\n"
      "Counted in the executor that checks every access: bytes, 32-byte sectors for each request "
      "of "
      "a\nwarp, bank conflicts of shared memory. \"conflicts\" and \"atomics\" are no global "
      "bytes.");
  const auto id = std::make_shared<std::string>();
  const auto timeout = std::make_shared<double>(0);
  command.option("case", id.get(), "id of the case, as ./tigon check prints it").required();
  command.option("--timeout", timeout.get(), "seconds (60)").not_negative();
  command.run([=] {
    if (default_executor() == "cuda")
      throw UsageError("trace counts in the host executor: ./tigon --device host trace");
    const TraceResult trace = run_trace(parse_case(*id), *timeout);
    const Json fields = without_nonfinite(to_json(trace));
    print_trace(fields);
    if (trace.verdict == Verdict::kPassed) print_lines(trace, fields);
    Tally tally;
    tally.add(trace.verdict);
    fmt::print("{}\n", tally.line());
    program->exit_code = tally.exit_code();
  });
}

}  // namespace tigon::cli
