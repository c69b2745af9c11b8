// SPDX-License-Identifier: Apache-2.0
// Bad inputs of every command of the program, in tables: what is typed and how it must be refused.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/tests/temporary_folder.h"

namespace tigon {

struct BadInput {
  std::vector<std::string> words;
  int code;
  std::string says;  // a part of the line
  std::vector<std::string> variables = {};
};

struct BadInputTable {
  std::string name;
  std::vector<BadInput> inputs;
};

// Files that are wrong in one way each, and one run that is right.
class BadFiles {
 public:
  BadFiles();
  std::string operator()(const std::string& name) const { return (folder_.path() / name).string(); }
  // Every file with its contents.
  std::map<std::string, std::string> contents() const;

 private:
  void write(const char* name, const std::string& text);

  TemporaryFolder folder_;
};

// A library that is wrong in the way that the variable BAD_PLUGIN names, or no_symbol.
std::filesystem::path plugin_library(const std::string& name);

std::vector<BadInputTable> bad_inputs(const BadFiles& files);

// Types all inputs of a table in an empty folder. What is wrong with how they were refused: one
// clear line on stderr that says what is wrong, the right exit code, nothing written, nothing lost.
std::vector<std::string> problems_of(const BadInputTable& table, const BadFiles& files);

}  // namespace tigon
