// SPDX-License-Identifier: Apache-2.0
// Runs the planted faults against the ordinary cases of their ops, each in child processes that
// hold the mutated kernels (tigon-mutants).
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/mutants/mutant.h"
#include "harness/run/check.h"

namespace tigon {

class Json;

enum class MutantOutcome {
  kCaught,         // a case fails that passes without the fault
  kSurvived,       // every case passes
  kEquivalent,     // declared to change nothing promised, and nothing noticed it
  kNotApplicable,  // not run on this device; the reason says why
  kInvalid,        // no statement: a case fails without the fault, or a proof is refuted
};
const char* name_of(MutantOutcome outcome);
// True for survived and invalid.
bool is_failure(MutantOutcome outcome);

// Somebody's kernels in place of the tree's: a library for each fault, loaded as a plug-in.
struct MutantLibraries {
  std::filesystem::path folder = {};
  // Those of a library ("plugin:NAME"), by the executor that it is for.
  std::map<std::string, std::vector<std::string>> implementations = {};

  // What was built with this fault ("": none), and the library for an executor in it.
  std::filesystem::path folder_of(const std::string& fault) const;
  std::filesystem::path library_of(const std::string& fault, const std::string& executor) const;
};

struct MutantRequest {
  std::vector<std::string> ops = {};  // empty: all
  std::vector<DType> dtypes = {};     // empty: all
  std::vector<MutantGroup> groups = {MutantGroup::kNumeric, MutantGroup::kMemorySync,
                                     MutantGroup::kSampled};
  std::string filter = {};          // regex searched in the fault's name
  bool part = false;                // each fault in one place instead of all
  std::vector<Mutant> faults = {};  // empty: those of the tree
  std::string program =
      "tigon-mutants";  // whose kernels have them; with "-checked" for that executor
  std::optional<MutantLibraries> libraries = {};  // which have them instead
  // Among faults, one after the other; else each has its own.
  bool shares_processes = on_gpu();
  int jobs = 0;          // children at a time; 0: one per core, up to twelve
  double timeout_s = 0;  // of one case; 0: 20 s
  uint64_t seed = 42;
  // Called from one thread at a time after each case that ran without a fault, before any with one.
  std::function<void(size_t done, size_t of)> on_survey = {};
  std::string fault_of_baseline = {};  // for tests: what should be right is wrong
};

// A fault in one pass of an op with one element type, on one executor. A sampled one is tried in
// all of them, and the result tells where it was caught or tried last.
struct MutantResult {
  const Mutant* mutant = nullptr;
  std::string op, pass;
  DType dtype = DType::kF32;
  std::string executor;  // one of executors()
  MutantOutcome outcome = MutantOutcome::kInvalid;
  Verdict verdict = Verdict::kNotRun;  // of the case that caught it
  std::string case_id = {};            // that case, else the last that was tried
  std::string reason = {};             // the verdict's, the proof or why there is none
  int cases = 0;                       // run with the fault
  double seconds = 0;
};

using MutantSink = std::function<void(const MutantResult&)>;

// What a request selects, outcomes not yet known.
std::vector<MutantResult> select_mutants(const MutantRequest& request);

// One of them on the executor of its group; `mutant` need not be of the list.
MutantResult score_mutant(const Mutant& mutant, const std::string& op, const std::string& pass,
                          DType dtype);

// Runs them; calls sink in the order of select_mutants from this thread, but last of sampled ones
// that others are asked for, too: Mutant::also. Stops when interrupted().
// Throws UsageError before anything has run, also when the programs are missing.
void run_mutants(const MutantRequest& request, const MutantSink& sink);

// As in harness/record/record.schema.json, KIND mutant.
Json to_json(const MutantResult& result);

}  // namespace tigon
