// The subcommands of tigon. Each add_<name> adds one to the program; running it sets *exit_code.
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

void add_list(Command root, Program* program);
void add_describe(Command root, Program* program);
void add_check(Command root, Program* program);
void add_bench(Command root, Program* program);
void add_converge(Command root, Program* program);
void add_report(Command root, Program* program);
void add_run(Command root, Program* program);
void add_mutants(Command root, Program* program);
void add_doctor(Command root, Program* program);
void add_maxlen(Command root, Program* program);
void add_soak(Command root, Program* program);
void add_rounding(Command root, Program* program);
void add_trace(Command root, Program* program);
void add_debug(Command root, Program* program);
void add_profile(Command root, Program* program);
void add_tune(Command root, Program* program);

// --out, --json, --junit, --tag.
struct Output {
  std::string out, json, junit;
  std::vector<std::string> tags;
};
void add_output(Command command, Output* output);
// --resume RUN, of commands that resume.h can continue; it is taken out before parsing.
void add_resume(Command command);
// Throws UsageError for a malformed tag.
SessionOptions session_options(const Program& program, const Output& output, uint64_t seed);

}  // namespace tigon::cli
