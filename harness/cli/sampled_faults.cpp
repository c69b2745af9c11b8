// SPDX-License-Identifier: Apache-2.0
// Has Python draw the mutants and build the kernels with them.
#include "harness/cli/sampled_faults.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/python.h"
#include "harness/run/check.h"

namespace tigon::cli {

namespace {

// The op and its passes.
void add_target(const char* option, const OpSpec& op, std::vector<std::string>* words) {
  words->insert(words->end(), {option, op.name});
  for (const Pass& pass : op.passes) words->back() += " " + pass.name;
}

}  // namespace

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
  for (const OpSpec* op : selected_ops(selection)) add_target("--on", *op, &words);
  for (const OpSpec& op : all_ops()) add_target("--op", op, &words);
  options->faults = file;
  return run_python(words, {"harness/mutants"}, "python3");
}

}  // namespace tigon::cli
