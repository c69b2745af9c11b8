// The subcommands of tigon. Each add_<name> adds one to the program; its callback sets *exit_code.
#pragma once
#include <CLI/CLI.hpp>  // with App.hpp alone, a program without main.cpp lacks its vtables
#include <string>
#include <vector>

#include "harness/cli/session.h"

namespace tigon::cli {

struct Program {
  std::vector<std::string> command;        // as typed, "./tigon" first
  std::vector<std::string> gtest_flags;    // --gtest_*, which check hands on to GoogleTest
  std::shared_ptr<const Resumed> resumed;  // of --resume RUN, whose options are parsed
  int exit_code = 0;
};

void add_list(CLI::App* app, Program* program);
void add_describe(CLI::App* app, Program* program);
void add_check(CLI::App* app, Program* program);
void add_bench(CLI::App* app, Program* program);
void add_converge(CLI::App* app, Program* program);
void add_report(CLI::App* app, Program* program);
void add_run(CLI::App* app, Program* program);
void add_mutants(CLI::App* app, Program* program);
void add_doctor(CLI::App* app, Program* program);
void add_maxlen(CLI::App* app, Program* program);
void add_soak(CLI::App* app, Program* program);
void add_rounding(CLI::App* app, Program* program);
void add_trace(CLI::App* app, Program* program);
void add_debug(CLI::App* app, Program* program);
void add_profile(CLI::App* app, Program* program);
void add_tune(CLI::App* app, Program* program);

// --out, --json, --junit, --tag.
struct Output {
  std::string out, json, junit;
  std::vector<std::string> tags;
};
void add_output(CLI::App* command, Output* output);
// --resume RUN, of commands that resume.h can continue; it is taken out before parsing.
void add_resume(CLI::App* command);
// Throws UsageError for a malformed tag.
SessionOptions session_options(const Program& program, const Output& output, uint64_t seed);

}  // namespace tigon::cli
