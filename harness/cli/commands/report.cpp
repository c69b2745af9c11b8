// SPDX-License-Identifier: Apache-2.0
// tigon report: the static report of runs, written by Python from their records.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/python.h"
#include "harness/cli/stages.h"
#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

// The folder of the latest run below results/; run ids sort by time.
std::filesystem::path latest_run() {
  std::filesystem::path latest;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("results", ignored))
    if (std::filesystem::exists(entry.path() / "records.jsonl"))
      latest = std::max(latest, entry.path());
  if (latest.empty())
    throw MissingData("no run in results/; make one with ./tigon run, or name a results folder");
  return latest;
}

int report(const std::string& run, bool has_host_times) {
  std::vector<std::string> words = {"tigon_report", "report", run};
  if (has_host_times) words.push_back("--host-times");
  return run_python(words, {"reports"}, "python3 with matplotlib, jinja2 and numpy");
}

}  // namespace

int report_stage(const std::filesystem::path& results) { return report(results.string(), false); }

void add_report(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon report                                  the latest run below results/\n"
      "  ./tigon report results/20261121T074500Z-1a2b3c4d\n"
      "Writes index.html, a page for each op, training.html, trust.html and summary.md into the\n"
      "run's folder.");
  const auto runs = std::make_shared<std::vector<std::string>>();
  command.option("runs", runs.get(), "results folders or records.jsonl files");
  const auto has_host_times = std::make_shared<bool>();
  command.flag("--host-times", has_host_times.get(),
               "also show wall times of the host executor, which are no kernel speed");
  command.run([=] {
    if (runs->empty()) runs->push_back(latest_run().string());
    for (const std::string& run : *runs)
      if (!std::filesystem::exists(run))
        throw MissingData(fmt::format("{}: no such results folder; see ls results/", run));
    for (const std::string& run : *runs)
      program->exit_code = combined(program->exit_code, report(run, *has_host_times));
  });
}

}  // namespace tigon::cli
