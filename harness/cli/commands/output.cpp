// SPDX-License-Identifier: Apache-2.0
// Options that say where results go.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "harness/cli/commands.h"

namespace tigon::cli {
namespace {

// A path of what stdout was; what is printed goes to stderr from here on.
std::string stdout_for_records(const Program& program) {
  const std::string& command = program.command.at(1);
  if (command != "check" && command != "bench")
    throw UsageError(
        fmt::format("--json -: check and bench write records to stdout, {} needs a file", command));
  const int records = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  std::fflush(stdout);
  if (records < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw RecordError("--json -: stdout is closed");
  return fmt::format("/proc/self/fd/{}", records);
}

}  // namespace

void add_output(Command command, Output* output) {
  command.option("--out", &output->out, "folder of the results (default: results/<run_id>)");
  command.option("--json", &output->json,
                 "write the records (JSONL) to this file instead of the folder's records.jsonl; "
                 "of check and bench also -, stdout, and the text to stderr");
  command.option("--junit", &output->junit, "also write the verdicts as JUnit XML");
  command.repeated("--tag", &output->tags, "name=value, kept with the run");
}

void add_resume(Command command) {
  command.ignored(kResume,
                  "go on with this run (folder or name) where it ended; alone, with its options");
}

SessionOptions session_options(const Program& program, const Output& output, uint64_t seed) {
  SessionOptions options;
  options.out = output.out;
  options.json = output.json == "-" ? stdout_for_records(program) : output.json;
  options.junit = output.junit;
  for (const std::string& tag : output.tags) {
    const size_t equals = tag.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("--tag {}: write name=value", tag));
    options.tags[tag.substr(0, equals)] = tag.substr(equals + 1);
  }
  options.seed = seed;
  options.command = program.command;
  options.resumed = program.resumed;
  require_no_run(options);
  return options;
}

}  // namespace tigon::cli
