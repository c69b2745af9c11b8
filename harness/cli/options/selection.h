// SPDX-License-Identifier: Apache-2.0
// The options that choose cases, shared by check and bench: --op, --pass, --impl, --dtype, -a,
// --filter, --exclude, --case, --shard, --model, --ranks, --budget.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "harness/cli/options/command_line.h"
#include "harness/run/check.h"

namespace tigon::cli {

struct Selection {
  std::vector<std::string> ops, passes, implementations, dtypes, axes, cases;
  std::string filter, exclude, shard;
  std::string model;   // of models.h: its ops, unless some are named, and its sizes
  std::string budget;  // time for a pairwise covering instead of all cases
  uint64_t seed = 42;
  int ranks = 0;  // 0: as each op plans it
  double timeout_s = 0;
};

// Which part of the cases this run takes: those whose stable_hash leaves `index` modulo `count`.
struct Shard {
  int index = 0, count = 1;
  std::string source;  // "--shard" or the environment variable that says so; empty: not sharded
  std::string group;   // what the shards of one run share where that is known, e.g. the array's job
};

// --shard I/N; else GTEST_SHARD_INDEX of GTEST_TOTAL_SHARDS; else the place of SLURM_ARRAY_TASK_ID
// in its job array. Throws UsageError.
Shard shard_of(const std::string& option);

// Adds the options to a subcommand. --filter and --exclude are also read from TIGON_FILTER and
// TIGON_EXCLUDE.
void add_selection(Command command, Selection* selection);

// The request that a selection stands for, with shard_of (GTEST_SHARD_STATUS_FILE is touched).
// Everything is checked: throws UsageError, one line.
CheckRequest request_of(const Selection& selection);

// Seconds of --budget ("60s", "2m", "90"); 0 when it is not given. Throws UsageError.
double budget_of(const Selection& selection);

// Why a case is left to a GPU where a model's sizes or a budget chose it for the host executor:
// its tensors would not fit, or it would take too long. Empty when it is not.
std::string too_large(const Case& c, const Selection& selection);

// The ops of a selection in the manifest's order.
std::vector<const OpSpec*> selected_ops(const Selection& selection);

// The element type of a short or a torch name: bf16, bfloat16, float32, half, ... Throws
// UsageError.
DType dtype_named(const std::string& name);

// True when --exclude is given and is found in the id. Throws UsageError when it is no regex.
class Exclusion {
 public:
  explicit Exclusion(const std::string& pattern);
  bool operator()(const std::string& id) const;

 private:
  struct Pattern;
  std::shared_ptr<const Pattern> pattern_;  // none: nothing is left out
};

}  // namespace tigon::cli
