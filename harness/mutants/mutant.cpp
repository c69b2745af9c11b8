// SPDX-License-Identifier: Apache-2.0
// The list of planted faults as a whole.
#include "harness/mutants/mutant.h"

#include <algorithm>
#include <filesystem>

#include "harness/mutants/fault_file.h"

namespace tigon {

namespace {

std::vector<std::string> fault_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TIGON_SOURCE_DIR "/harness/ops"))
    if (entry.path().extension() == ".faults") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> all = read_fault_files(fault_files());
  return all;
}

std::optional<std::string> equivalence(const Mutant& mutant, const std::string& op,
                                       const std::string& pass, DType dtype) {
  for (const Equivalent& e : mutant.equivalents) {
    const bool of_dtype =
        e.dtypes.empty() || std::find(e.dtypes.begin(), e.dtypes.end(), dtype) != e.dtypes.end();
    if (of_dtype && (e.op.empty() || e.op == op) && (e.pass.empty() || e.pass == pass))
      return e.proof;
  }
  return std::nullopt;
}

}  // namespace tigon
