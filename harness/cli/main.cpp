// The tigon program: lists, describes, checks, measures, trains and reports.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "harness/cli/commands.h"
#include "harness/cli/converge_options.h"
#include "harness/cli/machine_table.h"
#include "harness/cli/suggest.h"
#include "harness/cli/terminal.h"
#include "harness/plugin/use_plugin.h"
#include "harness/record/build_info.h"
#include "harness/run/child.h"

namespace tigon::cli {
namespace {

// The options of a command and of all above it, for "did you mean".
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

// CLI11's message as one line, with the nearest name.
std::string one_line(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  if (const size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
  const size_t value = text.find("Value "), range = text.find(" not in range ");
  // A range up to the largest double fills four lines.
  if (value < range && range != std::string::npos)
    text = fmt::format("{}{} is out of range", text.substr(0, value),
                       text.substr(value + 6, range - value - 6));
  const auto commands = app.get_subcommands();
  const CLI::App& used = commands.empty() ? app : *commands.front();
  const std::vector<std::string> rest = used.remaining();
  const std::vector<std::string> extra = rest.empty() ? app.remaining() : rest;
  if (!extra.empty()) {
    const bool is_option = extra[0][0] == '-';
    const std::string name = extra[0].substr(0, extra[0].find('='));
    const std::string near = nearest(name, is_option ? option_names(used) : command_names(app));
    text = fmt::format("unknown {} '{}'{}", is_option ? "option" : "argument", name,
                       near.empty() ? "" : fmt::format(", did you mean '{}'?", near));
  }
  const std::string where = commands.empty() ? "" : " " + used.get_name();
  return fmt::format("{}; see ./tigon{} --help", text, where);
}

int fail(int code, const std::string& text) {
  print_error(text);
  return code;
}

int run_program(int argc, char** argv) {
  std::error_code gone;
  if (std::filesystem::current_path(gone).empty() || gone)
    throw std::runtime_error("the working directory is gone or cannot be read; change to another");
  CLI::App app("tigon: fused GPU kernels for LLM training and the harness that proves them",
               "./tigon");
  app.require_subcommand(1);
  app.set_version_flag("--version", "tigon " + build_info().version);
  app.footer(
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
  add_run(&app, &program);
  add_check(&app, &program);
  add_bench(&app, &program);
  add_converge(&app, &program);
  add_report(&app, &program);
  add_list(&app, &program);
  add_describe(&app, &program);
  add_mutants(&app, &program);
  add_doctor(&app, &program);
  add_maxlen(&app, &program);
  add_soak(&app, &program);
  add_rounding(&app, &program);
  add_trace(&app, &program);
  add_debug(&app, &program);
  add_profile(&app, &program);
  add_tune(&app, &program);
  std::vector<std::string> typed(argv + 1, argv + argc);
  use_machine_table();
  if (auto resumed = resumed_run(typed)) {
    typed = resumed->words();
    program.resumed = std::make_shared<const Resumed>(std::move(*resumed));
  }
  // CLI11 takes the words from the back.
  std::vector<std::string> words;
  for (auto word = typed.rbegin(); word != typed.rend(); ++word)
    (word->rfind("--gtest_", 0) == 0 ? program.gtest_flags : words).push_back(*word);
  try {
    app.parse(words);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail(kExitUsage, one_line(app, error));
  }
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
