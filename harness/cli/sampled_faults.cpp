// SPDX-License-Identifier: Apache-2.0
// Has Python draw the mutants and build the kernels with them.
#include "harness/cli/sampled_faults.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/python.h"
#include "harness/run/check.h"

namespace tigon::cli {

int sample_faults(MutantOptions* options) {
  if (!options->faults.empty())
    throw UsageError("--sample draws its faults itself: leave out --faults");
  Selection selection;
  selection.ops = options->ops;
  const auto build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const std::string file = build / "own_faults" / "own.faults";
  std::vector<std::string> words = {"tigon_mutants",
                                    build,
                                    file,
                                    "--device",
                                    default_executor() == "cuda" ? "cuda" : "host",
                                    "--sample",
                                    fmt::format("{}", options->sample),
                                    "--seed",
                                    fmt::format("{}", options->sample_seed)};
  if (!options->changed.empty()) words.insert(words.end(), {"--changed", options->changed});
  for (const OpSpec* op : selected_ops(selection)) {
    words.insert(words.end(), {"--on", op->name});
    for (const Pass& pass : op->passes) words.back() += " " + pass.name;
  }
  options->faults = file;
  return run_python(words, {"harness/mutants"}, "python3");
}

}  // namespace tigon::cli
