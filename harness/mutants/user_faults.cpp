// SPDX-License-Identifier: Apache-2.0
// Checks what only the tree and its contracts can tell of a fault file.
#include "harness/mutants/user_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "harness/mutants/fault_file.h"
#include "harness/mutants/mutate.h"
#include "harness/run/cases/case.h"
#include "harness/run/check.h"

namespace tigon {

namespace {

[[noreturn]] void fail(const Mutant& m, const std::string& text) {
  throw FaultFileError(m.source, m.line, m.name + ": " + text);
}

void check_targets(const Mutant& m) {
  for (const MutantTarget& target : m.targets) {
    const OpSpec* op = find_op(target.op);
    if (op == nullptr) {
      std::vector<std::string> known;
      for (const OpSpec& o : all_ops()) known.push_back(o.name);
      fail(m, fmt::format("no op '{}'; there are {}", target.op, fmt::join(known, ", ")));
    }
    for (const std::string& pass : target.passes) {
      if (find_pass(*op, pass) != nullptr) continue;
      std::vector<std::string> known;
      for (const auto& p : op->passes) known.push_back(p.name);
      fail(m,
           fmt::format("{} has no pass '{}'; it has {}", op->name, pass, fmt::join(known, ", ")));
    }
  }
}

void check_hint(const Mutant& m) {
  try {
    std::regex hint(m.hint);
  } catch (const std::regex_error& e) {
    fail(m, fmt::format("hint '{}' is not a regular expression ({})", m.hint, e.what()));
  }
}

void check_places(const std::vector<Mutant>& faults) {
  std::set<std::string> files;
  for (const Mutant& m : faults)
    for (const Edit& edit : m.edits) {
      check_file(TIGON_SOURCE_DIR, m, edit);
      files.insert(edit.file);
    }
  for (const std::string& file : files) mutated_file(TIGON_SOURCE_DIR, file, faults);
}

void check_places_in(const std::string& source, const std::vector<Mutant>& faults) {
  const std::string name = std::filesystem::path(source).filename();
  const std::string text = source_text(source);
  for (const Mutant& m : faults) {
    for (const Edit& edit : m.edits)
      if (edit.file != name)
        throw FaultFileError(m.source, edit.line,
                             fmt::format("{}: 'file: {}' is not that of --in; write 'file: {}'",
                                         m.name, edit.file, name));
    with_one_fault(text, m);
  }
}

}  // namespace

std::vector<Mutant> user_faults(const std::string& path, const std::string& source) {
  try {
    std::vector<Mutant> faults = read_fault_files({path});
    if (faults.empty())
      throw FaultFileError(path, 1, "holds no fault; one begins with 'fault: name'");
    for (const Mutant& m : faults) {
      check_targets(m);
      check_hint(m);
    }
    source.empty() ? check_places(faults) : check_places_in(source, faults);
    return faults;
  } catch (const FaultFileError& e) {
    throw UsageError(e.what());
  }
}

std::string source_text(const std::string& source) {
  const std::string extension = std::filesystem::path(source).extension();
  if (extension != ".cu" && extension != ".cpp")
    throw UsageError(
        fmt::format("--in {}: faults are planted in CUDA and C++ (.cu, .cpp)", source));
  std::ifstream in(source, std::ios::binary);
  if (!in || !std::filesystem::is_regular_file(source))
    throw UsageError(fmt::format("--in {}: no such file", source));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace tigon
