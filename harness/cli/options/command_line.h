// SPDX-License-Identifier: Apache-2.0
// Commands and their options as data: name, where the value goes, what it means. CLI11 reads the
// words, in command_line.cpp alone: a file that includes it compiles for seconds longer.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tigon::cli {

// A declared option; what is added to it is checked while the words are read.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required() const;
  Option excludes(Option other) const;
  Option needs(Option other) const;
  Option positive() const;
  Option not_negative() const;
  Option between(double least, double most) const;
  Option one_of(std::vector<std::string> words) const;
  Option or_environment(const char* variable) const;

 private:
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_command(const std::string& name, const std::string& what) const;
  // What --help ends with: examples.
  void footer(const std::string& text) const;
  // Called when the words are this command's.
  void run(std::function<void()> command) const;

  // "--name", "-n,--name", or "name" for a word without a dash. A vector takes every such word.
  Option option(const std::string& names, std::string* to, const std::string& what) const;
  Option option(const std::string& names, int* to, const std::string& what) const;
  Option option(const std::string& names, unsigned* to, const std::string& what) const;
  Option option(const std::string& names, int64_t* to, const std::string& what) const;
  Option option(const std::string& names, uint64_t* to, const std::string& what) const;
  Option option(const std::string& names, double* to, const std::string& what) const;
  Option option(const std::string& names, std::optional<double>* to, const std::string& what) const;
  Option option(const std::string& names, std::vector<std::string>* to,
                const std::string& what) const;
  // One word each time, which may be given again; in a list commas separate words.
  Option repeated(const std::string& names, std::vector<std::string>* to,
                  const std::string& what) const;
  Option list(const std::string& names, std::vector<std::string>* to,
              const std::string& what) const;
  // "!--no-name" makes it false.
  Option flag(const std::string& names, bool* to, const std::string& what) const;
  Option flag(const std::string& names, std::function<void()> set, const std::string& what) const;

  // One that is read elsewhere: a word that --help names.
  Option ignored(const std::string& names, const std::string& what) const;

  // After the words are read: was it given?
  bool given(const std::string& option) const;
  bool parsed() const;

 private:
  CLI::App* app_;
};

// The words of a program.
class CommandLine {
 public:
  // `name` is how it is called, e.g. "./tigon".
  CommandLine(const std::string& what, const std::string& name);
  ~CommandLine();

  Command program() const { return Command(app_.get()); }
  void set_version(const std::string& text);
  void require_command();
  // Those that have this option.
  std::vector<std::string> commands_with(const std::string& option) const;
  // Runs the command that the words are of. Otherwise an exit code: --help and --version print what
  // they are asked for, and a wrong word is one line on stderr, with the nearest right one.
  std::optional<int> parse(const std::vector<std::string>& words);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace tigon::cli
