// SPDX-License-Identifier: Apache-2.0
// Checking as a library: which cases a request selects, and running each in a child process.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/output_result.h"
#include "harness/judge/verdict.h"
#include "harness/run/cases/case.h"

namespace tigon {

class Json;

enum class Tier {
  kTiny,   // small enough for the checking executor
  kCheck,  // everything
  kSweep,  // the sizes that are measured, default options and inputs
  kHuge,   // offsets beyond 2^31 elements and 2^32 bytes: on a GPU whole tensors, elsewhere rows
           // that lie far apart
};

// What to check. An empty list means all; an unknown name is a UsageError with the known ones.
struct CheckRequest {
  std::vector<std::string> ops, passes, implementations;
  std::vector<DType> dtypes;
  std::string filter;                        // regex searched in the case id; a leading '-' negates
  std::vector<std::string> properties = {};  // if given: only the cases of these properties
  std::map<std::string, std::vector<int64_t>> axes;  // values that replace those of the contract
  std::vector<Case> cases;                           // if given: exactly these, in this order
  int shard_index = 0, shard_count = 1;              // by stable_hash of the case id
  uint64_t seed = 42;
  double timeout_s = 0;  // wall limit of one case; 0: 60 s on the host executor, 30 s on a GPU
  std::string executor;  // one of executors(); empty: default_executor()
  Tier tier = Tier::kCheck;
  int ranks = 0;            // only passes over ranks, with so many; 0: all passes, as planned
  bool quick = false;       // wide rows in one element type each, which take turns
  int jobs = 0;             // children at a time; 0: one per core, one on a GPU
  std::string plugin;       // library that the children load kernels from (harness/plugin)
  std::string save_folder;  // if given: every case's tensors go to <save_folder>/<case_key>/
};

struct CheckResult {
  Case c;
  std::string executor;
  Verdict verdict = Verdict::kNotRun;
  std::string reason;  // one line: what, where, the pattern of the failing elements
  std::vector<OutputResult> outputs;
  double seconds = 0;
  std::string repro;                      // "./tigon check --case '...'"
  std::vector<std::string> kernels = {};  // that it launched; on the host
};

struct CheckReport {
  Tally tally;
  bool interrupted = false;
  double seconds = 0;
  ExitCode exit_code() const { return interrupted ? kExitInterrupted : tally.exit_code(); }
};

using CheckSink = std::function<void(const CheckResult&)>;

// Of this build: "cuda"; or on the host "fast", "checked", which watches every access of a kernel,
// and "sm_80", which is "fast" with the launch paths of a GPU before sm_90.
const std::vector<std::string>& executors();
// The first of them.
std::string default_executor();
// Times of the host executor say nothing of a kernel's speed.
inline bool on_gpu() { return default_executor() == "cuda"; }

// The cases of a request in a fixed order. Throws UsageError.
std::vector<Case> select_cases(const CheckRequest& request);

// Runs every selected case in a child process; calls sink in the order of select_cases, from this
// thread, as soon as a result is known. Never throws for what a kernel does. Throws UsageError
// before anything has run.
CheckReport run_checks(const CheckRequest& request, const CheckSink& sink);

// The same cases as GoogleTest tests, registered at run time as "<op>.<pass>.<impl>" . "<rest of
// the id>", so that --gtest_filter, GTEST_TOTAL_SHARDS and --gtest_output work. argc and argv are
// given to InitGoogleTest. Counts itself, because GoogleTest exits with 0 when nothing ran. Once
// per process.
CheckReport run_checks_as_gtest(const CheckRequest& request, const CheckSink& sink, int* argc,
                                char** argv);

// Counters of one kernel, summed over its launches.
struct KernelTrace {
  std::string name;
  int64_t launches = 0;
  double bytes_loaded = 0, bytes_stored = 0, requests = 0, sectors = 0, bank_conflicts = 0,
         barriers = 0, atomics = 0;
};
struct TraceResult {
  Case c;
  Verdict verdict = Verdict::kNotRun;
  std::string reason;
  std::vector<KernelTrace> kernels;
  // The same by source line, the most bytes first; `name` is "kernels/rope/rope.cu:88".
  std::vector<KernelTrace> lines;
  double bytes_min = 0;  // of the contract
};

// What a closer look at a failing case shows, one short sentence each.
struct Explanation {
  std::vector<std::string> facts;
};

// Runs the case once in the checking executor and counts its memory traffic. Host builds only.
TraceResult run_trace(const Case& c, double timeout_s = 0);

// Least bytes of a case (the contract's, or each input and output once), its floating-point
// operations, and those that no library can leave out.
double minimum_bytes(const Case& c);
// Of all tensors as they are stored; minimum_bytes is less where there are no tokens.
double stored_bytes(const Case& c);
double flops_of(const Case& c);
double least_flops_of(const Case& c);
// The matrix products of the pass that the case's outputs need, in the contract's order.
struct ProductSize {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};
std::vector<ProductSize> products_of(const Case& c);

// As in harness/record/record.schema.json, KIND check and trace, without the fields that every
// record has. Numbers that are not finite stay so; the record writer names them.
Json to_json(const CheckResult& result);
Json to_json(const TraceResult& trace);
// The result that a check's record tells: case, verdict, reason and head-room. Nothing when the
// record is not one of a case of this build.
std::optional<CheckResult> check_of_record(const Json& record);

// Ctrl-C: the first asks run_checks to stop (what is done stays), the second ends the process.
void install_interrupt_handler();
bool interrupted();

}  // namespace tigon
