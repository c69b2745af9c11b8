// SPDX-License-Identifier: Apache-2.0
// tigon-mutate ROOT FOLDER FAULTS... -- FILE...: writes each FILE of the tree at ROOT with its
// faults to FOLDER/FILE. A file that would not change is left alone, so that nothing is compiled
// again.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

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

void run(const fs::path& root, const fs::path& folder, const std::vector<std::string>& fault_files,
         const std::vector<std::string>& files) {
  const std::vector<Mutant> faults = read_fault_files(fault_files);
  for (const Mutant& m : faults)
    for (const Edit& edit : m.edits) check_file(root, m, edit);
  for (const std::string& file : files)
    write_if_new(folder / file, mutated_file(root, file, faults));
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
