// The options that choose cases, shared by check and bench: --op, --pass, --impl, --dtype, -a,
// --filter, --exclude, --case, --shard.
#pragma once
#include <CLI/App.hpp>
#include <regex>
#include <string>
#include <vector>

#include "harness/run/check.h"

namespace tigon::cli {

struct Selection {
  std::vector<std::string> ops, passes, implementations, dtypes, axes, cases;
  std::string filter, exclude, shard;
  uint64_t seed = 42;
  double timeout_s = 0;
};

// Adds the options to a subcommand. --filter and --exclude are also read from TIGON_FILTER and
// TIGON_EXCLUDE.
void add_selection(CLI::App* command, Selection* selection);

// The request that a selection stands for; --shard, else GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX
// (GTEST_SHARD_STATUS_FILE is touched). Everything is checked: throws UsageError, one line.
CheckRequest request_of(const Selection& selection);

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
  bool given_;
  std::regex pattern_;
};

}  // namespace tigon::cli
