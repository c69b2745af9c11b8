// Options that say where results go.
#include <fmt/format.h>

#include "harness/cli/commands.h"

namespace tigon::cli {

void add_output(Command command, Output* output) {
  command.option("--out", &output->out, "folder of the results (default: results/<run_id>)");
  command.option("--json", &output->json,
                 "write the records (JSONL) to this file instead of the folder's records.jsonl");
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
  options.json = output.json;
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
  return options;
}

}  // namespace tigon::cli
