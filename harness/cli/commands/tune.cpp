// SPDX-License-Identifier: Apache-2.0
// tigon tune: the fastest shape of each row in the kernels' launch tables, on this machine. What a
// shape is made of is in kernels/device/launch_table.h. The vector width is no part of it: 16 bytes
// are the widest access there is and no kernel gains by a narrower one, so a launch takes single
// elements only where a tensor's address forbids 16 bytes.
#include <fmt/format.h>
#include <stdlib.h>

#include <ctime>
#include <filesystem>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/text/machine_table.h"
#include "harness/cli/text/terminal.h"
#include "harness/measure/sweep.h"
#include "harness/measure/tune_cell.h"
#include "harness/record/environment.h"
#include "kernels/device/launch_file.h"
#include "kernels/device/runtime.h"

namespace tigon::cli {
namespace {

struct TuneOptions {
  Selection select;
  std::vector<std::string> ops;
  std::string out = "results/launch_table.tsv";
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

// "256 lanes x 2, 2/SM, 3 stages": lanes, vectors of each, blocks, and what is not 1.
std::string text_of(const LaunchShape& s) {
  std::string text = fmt::format("{} lanes", s.lanes);
  if (s.vectors > 0) text += fmt::format(" x {}", s.vectors);
  text += fmt::format(", {}/SM", s.blocks_per_sm);
  if (s.stages > 1) text += fmt::format(", {} stages", s.stages);
  if (s.cluster > 1) text += fmt::format(", cluster {}", s.cluster);
  return text;
}

// All small cases of the row's size, run by children that take this table.
bool is_right(const Case& c, const LaunchEntry& entry, const std::string& path) {
  write_launch_file(path, {entry});
  setenv(kLaunchTableVariable, path.c_str(), 1);
  CheckRequest request;
  request.ops = {c.op};
  request.passes = {c.pass};
  request.implementations = {c.impl};
  request.dtypes = {c.dtype};
  const OpSpec& op = *find_op(c.op);
  for (const AxisPlan& a : op.axes) request.axes[a.axis.symbol] = {c.axes.at(a.axis.symbol)};
  request.axes[op.axes.front().axis.symbol] = {3, 33};
  int passed = 0, failed = 0;
  run_checks(request, [&](const CheckResult& r) {
    passed += r.verdict == Verdict::kPassed;
    failed += is_failure(r.verdict);
  });
  unsetenv(kLaunchTableVariable);
  return passed > 0 && failed == 0;
}

std::string row_of(const Case& c, const Tuned& t, const char* what) {
  return fmt::format("{:<58} {} shapes  {}: {:>10} -> {}: {:>10}  {:.3f}  {}", case_id(c), t.shapes,
                     text_of(t.before), show_seconds(t.before_s), text_of(t.after),
                     show_seconds(t.after_s), t.before_s / t.after_s, what);
}

int tune(const TuneOptions& options) {
  CheckRequest request = request_of(options.select);
  if (request.implementations.empty()) request.implementations = {"fused"};
  const bool on_host = default_executor() != "cuda";
  const auto cells = sweep_cells(request, SweepSize::kDefault, on_host);
  std::vector<LaunchEntry> entries;
  fmt::print("launch tables for {}{}\n", machine_name(),
             on_host ? ": times of the host executor, no kernel speed" : "");
  std::error_code ignored;  // writing says it
  std::filesystem::create_directory(std::filesystem::path(options.out).parent_path(), ignored);
  write_launch_file(options.out + ".candidate", entries);  // a folder that is not there, now
  Tally tally;
  for (const Cell& cell : cells) {
    if (interrupted()) break;
    const auto tuned = tune_cell(cell.c);
    if (!tuned) continue;  // one shape, or a kernel without a table
    bool better = tuned->after != tuned->before, wrong = false;
    if (better) {
      const LaunchEntry entry = {current_device_name(),   today(),         default_executor(),
                                 current_commit().commit, tuned->key,      tuned->after,
                                 case_id(cell.c),         tuned->before_s, tuned->after_s};
      wrong = !is_right(cell.c, entry, options.out + ".candidate");
      if (!wrong) entries.push_back(entry);
    }
    tally.add(wrong ? Verdict::kIncorrectNumerical : Verdict::kPassed);
    fmt::print("{}\n", row_of(cell.c, *tuned,
                              wrong    ? "WRONG, not taken"
                              : better ? "taken"
                                       : "kept"));
    std::fflush(stdout);
  }
  std::remove((options.out + ".candidate").c_str());
  if (tally.passed() + tally.failed() == 0) {
    fmt::print("no launch table has a choice for these cells\n");
    return kExitNothing;
  }
  write_launch_file(options.out, entries);
  fmt::print("{} entries in {}; used with {}={}\n{}\n", entries.size(), options.out,
             kLaunchTableVariable, options.out, tally.line());
  return interrupted() ? static_cast<int>(kExitInterrupted) : tally.exit_code();
}

}  // namespace

void add_tune(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon tune rms_norm                          every length of the sweep, bf16\n"
      "  ./tigon tune layer_norm --dtype f32 -a H=4096 --out h200.tsv\n"
      "  TIGON_LAUNCH_TABLE=h200.tsv ./tigon bench --op layer_norm\n"
      "A shape is the threads of a row and of a block, and with them the rows of a block; the\n"
      "16-byte vectors that a thread holds; blocks per multiprocessor; stages, the rows on their\n"
      "way while one is worked on; and the blocks of a cluster that share a row. Each kernel has\n"
      "a table of those that it is compiled in; not all of these matter to all kernels. The\n"
      "vector width is no choice: narrower accesses than 16 bytes are for tensors whose address\n"
      "allows no more. Shapes are measured in turns; the slower half goes in each round, the\n"
      "incumbent stays. A winner must be 1% faster and pass the checks. A table made on another\n"
      "machine is refused by name.");
  const auto options = std::make_shared<TuneOptions>();
  command.option("ops", &options->ops, "ops, as --op");
  add_selection(command, &options->select);
  command.option("--out", &options->out, "where the table goes (results/launch_table.tsv)");
  command.run([=] {
    auto& ops = options->select.ops;
    ops.insert(ops.end(), options->ops.begin(), options->ops.end());
    program->exit_code = tune(*options);
  });
}

}  // namespace tigon::cli
