// SPDX-License-Identifier: Apache-2.0
// What check, bench and converge do inside a session; `run` does all of them in one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "convergence/converge.h"
#include "harness/cli/options/plugin_options.h"
#include "harness/cli/options/selection.h"
#include "harness/cli/session.h"
#include "harness/measure/measure_cell.h"
#include "harness/measure/sweep.h"
#include "harness/mutants/score.h"

namespace tigon::cli {

struct CheckOptions {
  Selection select;
  std::vector<std::string> properties;  // only these
  std::string executor;  // empty: tiny cases checked and all cases fast on the host, all on a GPU
  std::string save;
  PluginOptions plugin;
  std::string tier;  // tiny, check, sweep or huge; empty: check
  std::string as;    // a device whose launch paths are taken on any; empty: this one's
  int jobs = 0;
  double shrink_s = 5;  // most time to look at a failing case again; 0: none
  bool quick = false, trace = false, verbose = false, headroom = false, coverage = false;
  bool lines = false;                    // and the lines of kernels that its cases take
  bool part = false;                     // each kind of case once (kinds.h) instead of all
  std::vector<std::string> gtest_flags;  // --gtest_filter=... and the like
};
struct MutantOptions {
  std::vector<std::string> ops = {}, dtypes = {}, groups = {};  // empty: all
  std::string filter = {};  // regex searched in the fault's name
  bool part = false;        // each fault in one place instead of all
  int jobs = 0;
  double timeout_s = 0;
  bool list = false, verbose = false;
  std::string faults = {};  // a fault file of the user's instead of those of the tree
  std::string source = {};  // a source of the user's instead of the kernels of the tree
  std::optional<MutantLibraries> libraries = {};  // built of it
  int sample = 0;            // mutants of each op that are drawn; 0: the faults of a file
  uint64_t sample_seed = 1;  // of the draw
  std::string changed = {};  // commit: only of files that differ from it, `sample` in all
  int score = 100;           // percent that must be caught
};
struct BenchOptions {
  Selection select;
  SweepSize size = SweepSize::kDefault;
  double seconds_per_cell = 0;
  PluginOptions plugin;
  std::string peers;         // names with commas
  bool quick_peers = false;  // peers::PeerOptions::quick
  int samples = 0;
  Bases bases = Bases::kAll;
  bool ceilings = true;
  bool grid = false;  // the plane of grid.h in place of a sweep
};

// Each validates its options before it does anything (UsageError), records and prints as it goes,
// and counts verdicts in the session. Returns its exit code; RecordError passes through.
int check_stage(Session& session, const CheckOptions& options);
int mutants_stage(Session& session, const MutantOptions& options);
int trace_stage(Session& session, const CheckOptions& options);
int bench_stage(Session& session, const BenchOptions& options);
int converge_stage(Session& session, const convergence::ConvergeRequest& request);

// Writes the report of a results folder with Python (TIGON_PYTHON, else python3) and returns its
// exit code.
int report_stage(const std::filesystem::path& results);

}  // namespace tigon::cli
