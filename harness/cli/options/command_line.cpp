// SPDX-License-Identifier: Apache-2.0
// Option tables over CLI11.
#include "harness/cli/options/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "harness/cli/text/terminal.h"
#include "harness/judge/verdict.h"
#include "harness/run/cases/known_names.h"

namespace tigon::cli {
namespace {

// Of a command and of all above it, for "did you mean".
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
  return fmt::format("{}; see {}{} --help", text, app.get_name(), where);
}

}  // namespace

// ---- options
// --------------------------------------------------------------------------------------

Option Option::required() const { return Option(option_->required()); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::positive() const {
  return Option(option_->check([](const std::string& text) {
    return std::strtod(text.c_str(), nullptr) > 0 ? ""
                                                  : fmt::format("must be positive, not {}", text);
  }));
}
Option Option::not_negative() const { return Option(option_->check(CLI::NonNegativeNumber)); }
Option Option::between(double least, double most) const {
  return Option(option_->check(CLI::Range(least, most)));
}
Option Option::one_of(std::vector<std::string> words) const {
  return Option(option_->check(CLI::IsMember(std::move(words))));
}
Option Option::or_environment(const char* variable) const {
  return Option(option_->envname(variable));
}

using Names = std::string;
using Text = std::string;
using Words = std::vector<std::string>;

Option Command::option(const Names& names, std::string* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what));
}
Option Command::option(const Names& names, int* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what));
}
Option Command::option(const Names& names, unsigned* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what));
}
Option Command::option(const Names& names, int64_t* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what));
}
Option Command::option(const Names& names, uint64_t* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what));
}
Option Command::option(const Names& names, double* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what));
}
Option Command::option(const Names& names, std::optional<double>* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what));
}
Option Command::option(const Names& names, Words* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what));
}
Option Command::repeated(const Names& names, Words* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what)->allow_extra_args(false));
}
Option Command::list(const Names& names, Words* to, const Text& what) const {
  return Option(app_->add_option(names, *to, what)->allow_extra_args(false)->delimiter(','));
}
Option Command::flag(const Names& names, bool* to, const Text& what) const {
  return Option(app_->add_flag(names, *to, what));
}
Option Command::flag(const Names& names, std::function<void()> set, const Text& what) const {
  return Option(app_->add_flag_callback(names, std::move(set), what));
}
Option Command::ignored(const Names& names, const Text& what) const {
  return Option(app_->add_option_function<std::string>(
      names, [](const std::string&) {}, what));
}

// ---- commands
// -------------------------------------------------------------------------------------

Command Command::add_command(const std::string& name, const std::string& what) const {
  return Command(app_->add_subcommand(name, what));
}
void Command::footer(const std::string& text) const { app_->footer(text); }
void Command::run(std::function<void()> command) const { app_->callback(std::move(command)); }
bool Command::given(const std::string& option) const { return app_->count(option) > 0; }
bool Command::parsed() const { return app_->parsed(); }

CommandLine::CommandLine(const std::string& what, const std::string& name)
    : app_(std::make_unique<CLI::App>(what, name)) {}
CommandLine::~CommandLine() = default;

void CommandLine::set_version(const std::string& text) {
  app_->set_version_flag("--version", text);
}
void CommandLine::require_command() { app_->require_subcommand(1); }

std::vector<std::string> CommandLine::commands_with(const std::string& option) const {
  std::vector<std::string> names;
  for (const CLI::App* command : app_->get_subcommands(nullptr))
    if (command->get_option_no_throw(option) != nullptr) names.push_back(command->get_name());
  return names;
}

std::optional<int> CommandLine::parse(const std::vector<std::string>& words) {
  try {
    app_->parse(
        std::vector<std::string>(words.rbegin(), words.rend()));  // it takes them from the back
    return std::nullopt;
  } catch (const CLI::Success& help) {
    return app_->exit(help);
  } catch (const CLI::ParseError& error) {
    print_error(one_line(*app_, error));
    return kExitUsage;
  }
}

}  // namespace tigon::cli
