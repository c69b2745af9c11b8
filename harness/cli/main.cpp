// SPDX-License-Identifier: Apache-2.0
// The tigon program: lists, describes, checks, measures, trains and reports.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "harness/cli/commands.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/text/machine_table.h"
#include "harness/cli/text/terminal.h"
#include "harness/plugin/use_plugin.h"
#include "harness/record/build_info.h"
#include "harness/run/process/child.h"

namespace tigon::cli {
namespace {

int fail(int code, const std::string& text) {
  print_error(text);
  return code;
}

int run_program(int argc, char** argv) {
  std::error_code gone;
  if (std::filesystem::current_path(gone).empty() || gone)
    throw std::runtime_error("the working directory is gone or cannot be read; change to another");
  CommandLine line("tigon: fused GPU kernels for LLM training and the harness that proves them",
                   "./tigon");
  line.require_command();
  const BuildInfo build = build_info();
  line.set_version(build.commit.empty()
                       ? "tigon " + build.version
                       : fmt::format("tigon {} ({:.12})", build.version, build.commit));
  const Command root = line.program();
  root.footer(
      "Examples:\n"
      "  ./tigon run                                       everything, with a report\n"
      "  ./tigon check --op rms_norm --dtype bf16\n"
      "  ./tigon bench --op cross_entropy -a V=[32000,128256]\n"
      "./tigon COMMAND --help says more. Exit codes: 0 passed, 1 wrong numbers, 2 usage, 4 "
      "nothing\n"
      "ran or data missing, 5 no device, out of memory, time-out, crash or full disk, 130 Ctrl-C.");
  Program program;
  program.command.assign(argv, argv + argc);
  program.command[0] = "./tigon";
#define TIGON_COMMAND(name, what) add_##name(root.add_command(#name, what), &program);
#include "harness/cli/commands.inc"
#undef TIGON_COMMAND
  std::vector<std::string> typed(argv + 1, argv + argc);
  examine_machine_table();
  if (auto resumed = resumed_run(typed, line.commands_with(kResume))) {
    typed = resumed->words();
    program.resumed = std::make_shared<const Resumed>(std::move(*resumed));
  }
  std::vector<std::string> words;
  for (const std::string& word : typed)
    (word.rfind("--gtest_", 0) == 0 ? program.gtest_flags : words).push_back(word);
  if (!program.gtest_flags.empty() && !words.empty() && words[0] != "check")
    throw UsageError(fmt::format("{}: only check takes GoogleTest's flags; see ./tigon {} --help",
                                 program.gtest_flags[0].substr(0, program.gtest_flags[0].find('=')),
                                 words[0]));
  if (const auto code = line.parse(words)) return *code;
  return program.exit_code;
}

int run_child(int argc, char** argv) {
  plugin::use_plugin_of_child(argc, argv);
  return child_main(argc, argv);
}

int guarded(int (*program)(int, char**), int argc, char** argv) {
  try {
    return program(argc, argv);
  } catch (const UsageError& error) {
    return fail(kExitUsage, error.what());
  } catch (const MissingData& error) {
    return fail(kExitNothing, error.what());
  } catch (const RecordError& error) {
    return fail(kExitInfrastructure, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kExitInfrastructure, "out of memory");
  } catch (const std::exception& error) {
    return fail(kExitInfrastructure, error.what());
  }
}

}  // namespace
}  // namespace tigon::cli

int main(int argc, char** argv) {
  using namespace tigon::cli;
  if (argc > 1 && std::strcmp(argv[1], "child") == 0) return guarded(run_child, argc, argv);
  tigon::install_interrupt_handler();
  const int code = guarded(run_program, argc, argv);
  // A result that could not be printed is not a success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    print_error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    return code == tigon::kExitOk ? static_cast<int>(tigon::kExitInfrastructure) : code;
  }
  return code;
}
