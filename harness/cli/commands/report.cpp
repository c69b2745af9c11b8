// tigon report: the static report of runs, written by Python from their records.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/stages.h"
#include "harness/cli/text/terminal.h"
#include "harness/peers/peer_process.h"
#include "harness/record/build_info.h"

namespace tigon::cli {
namespace {

// Runs a program found in PATH to its end; 128 + signal when it was killed, -1 when it cannot
// start.
int run_program(std::vector<std::string> words, std::vector<std::string> environment) {
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "PYTHONPATH=", 11) != 0) environment.push_back(*variable);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  };
  std::fflush(stdout);
  pid_t child = -1;
  if (posix_spawnp(&child, words[0].c_str(), nullptr, nullptr, pointers(words).data(),
                   pointers(environment).data()) != 0)
    return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

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

}  // namespace

int report_stage(const std::filesystem::path& results) {
  const int code =
      run_program({peers::python_interpreter(), "-m", "tigon_report", "report", results.string()},
                  {"PYTHONPATH=" + build_info().source_dir + "/reports"});
  if (code == 127 || code == -1)
    print_error(fmt::format(
        "cannot start {}; set TIGON_PYTHON to a python3 with matplotlib, jinja2 and numpy",
        peers::python_interpreter()));
  if (interrupted()) return kExitInterrupted;
  const bool known = code == kExitOk || code == kExitUsage || code == kExitNothing;
  return known ? code : kExitInfrastructure;
}

void add_report(Command root, Program* program) {
  Command command = root.add_command("report", "write the report of runs from their records");
  command.footer(
      "Examples:\n"
      "  ./tigon report                                  the latest run below results/\n"
      "  ./tigon report results/20261121T074500Z-1a2b3c4d\n"
      "Writes index.html and summary.md into the run's folder.");
  const auto runs = std::make_shared<std::vector<std::string>>();
  command.option("runs", runs.get(), "results folders or records.jsonl files");
  command.run([=] {
    if (runs->empty()) runs->push_back(latest_run().string());
    for (const std::string& run : *runs)
      if (!std::filesystem::exists(run))
        throw MissingData(fmt::format("{}: no such results folder; see ls results/", run));
    for (const std::string& run : *runs)
      program->exit_code = combined(program->exit_code, report_stage(run));
  });
}

}  // namespace tigon::cli
