// SPDX-License-Identifier: Apache-2.0
// tigon-mutate ROOT FOLDER FAULTS... -- FILE...: writes each FILE of the tree at ROOT with its
// faults to FOLDER/FILE. A file that would not change is left alone, so that nothing is compiled
// again. A .cu in which no fault is, nor in what it includes, and that of an op on which none is to
// be caught and which no such op calls, becomes an empty file: what has no fault is linked as it
// is.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "harness/mutants/fault_file.h"
#include "harness/mutants/mutate.h"

namespace tigon {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_if_new(const fs::path& path, const std::string& text) {
  if (fs::exists(path) && text_of(path) == text) return;
  fs::create_directories(path.parent_path());
  if (!(std::ofstream(path, std::ios::binary) << text))
    throw std::runtime_error(path.string() + ": cannot be written");
}

// Whether the file is one of these or includes one.
bool reaches(const fs::path& root, const std::string& file, const std::set<std::string>& wanted,
             std::set<std::string>* seen) {
  if (!seen->insert(file).second) return false;
  if (wanted.count(file) > 0) return true;
  static const std::regex kInclude("#include \"(kernels/[^\"]+)\"");
  const std::string text = text_of(root / file);
  for (std::sregex_iterator i(text.begin(), text.end(), kInclude), end; i != end; ++i)
    if (reaches(root, (*i)[1], wanted, seen)) return true;
  return false;
}

// Whether one of these ops includes the signature of another, whose source it may call.
bool is_known_to(const fs::path& root, const std::set<std::string>& ops, const std::string& other) {
  const std::set<std::string> signature = {"kernels/" + other + "/" + other + ".h"};
  return std::any_of(ops.begin(), ops.end(), [&](const std::string& op) {
    std::set<std::string> seen;
    return reaches(root, "kernels/" + op + "/" + op + ".cu", signature, &seen);
  });
}

void run(const fs::path& root, const fs::path& folder, const std::vector<std::string>& fault_files,
         const std::vector<std::string>& files) {
  const std::vector<Mutant> faults = read_fault_files(fault_files);
  std::set<std::string> faulty, ops;
  for (const Mutant& m : faults) {
    for (const MutantTarget& target : m.targets) ops.insert(target.op);
    for (const Edit& edit : m.edits) {
      check_file(root, m, edit);
      faulty.insert(edit.file);
    }
  }
  for (const std::string& file : files) {
    const fs::path path = file;
    const std::string stem = path.stem();
    const bool of_other_op = path.parent_path().filename() == stem && ops.count(stem) == 0 &&
                             !is_known_to(root, ops, stem);
    std::set<std::string> seen;
    const bool left_out =
        path.extension() == ".cu" && (of_other_op || !reaches(root, file, faulty, &seen));
    write_if_new(folder / file, left_out ? "" : mutated_file(root, file, faults));
  }
}

}  // namespace
}  // namespace tigon

int main(int argc, char** argv) {
  char** const end = argv + argc;
  char** const bar = std::find(argv + std::min(argc, 3), end, std::string("--"));
  if (bar == end) {
    std::fprintf(stderr, "tigon-mutate ROOT FOLDER FAULTS... -- FILE...\n");
    return 2;
  }
  try {
    tigon::run(argv[1], argv[2], {argv + 3, bar}, {bar + 1, end});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
  return 0;
}
