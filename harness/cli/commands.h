// SPDX-License-Identifier: Apache-2.0
// The subcommands of tigon. Each add_<name> gives one its options; running it sets exit_code.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "harness/cli/options/command_line.h"
#include "harness/cli/session.h"

namespace tigon::cli {

struct Program {
  std::vector<std::string> command;        // as typed, "./tigon" first
  std::vector<std::string> gtest_flags;    // --gtest_*, which check hands on to GoogleTest
  std::shared_ptr<const Resumed> resumed;  // of --resume RUN, whose options are parsed
  int exit_code = 0;
};

#define TIGON_COMMAND(name, what) void add_##name(Command command, Program* program);
#include "harness/cli/commands.inc"
#undef TIGON_COMMAND

// --out, --json, --junit, --tag.
struct Output {
  std::string out, json, junit;
  std::vector<std::string> tags;
};
void add_output(Command command, Output* output);
// --resume RUN, of commands that can be continued (resume.h); it is taken out before parsing.
void add_resume(Command command);
// Throws UsageError for a malformed tag.
SessionOptions session_options(const Program& program, const Output& output, uint64_t seed);

}  // namespace tigon::cli
