// SPDX-License-Identifier: Apache-2.0
// Trains one small LLaMA twice from the same seed and batches, naive and fused, and judges whether
// the two runs part. `tigon converge` calls this.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "convergence/equivalence.h"
#include "convergence/model_config.h"
#include "kernels/signature/dtype.h"

namespace tigon::convergence {

// Bad request or data: one line that says what, where and what would be right.
struct ConvergeError : std::runtime_error {
  ConvergeError(int code, const std::string& what) : std::runtime_error(what), exit_code(code) {}
  int exit_code;  // 2: request or data; 5: out of memory or a launch that failed
};

struct OutOfMemory : ConvergeError {
  explicit OutOfMemory(const std::string& what) : ConvergeError(5, what) {}
};

// Which training a step or a run belongs to. The noise twin is the naive side again from weights
// that differ by one unit in the last place: its distance to the naive side is what rounding alone
// does.
enum class Side { kNaive, kFused, kNoise };
constexpr const char* name_of(Side side) {
  return side == Side::kNaive ? "naive" : side == Side::kFused ? "fused" : "noise";
}

struct StepReport {
  DType dtype = DType::kF32;
  Side side = Side::kNaive;
  int twin = 0;  // the pair: its seed is so many behind the first one's
  int step = 0;  // from 0
  int steps = 0;
  double loss = 0;       // mean over the step's tokens, before the update; nats
  double grad_norm = 0;  // global, before clipping
  double seconds_s = 0;
  std::string config = {};
  double tokens_per_s = 0;
  int64_t peak_bytes = 0;  // so far
};

// One training, whole or as far as it came.
struct RunReport {
  std::string config;
  DType dtype = DType::kF32;
  Side side = Side::kNaive;
  int twin = 0;
  double learning_rate = 0;  // at its peak
  int steps = 0;             // finished
  bool complete = false;     // not stopped on the way
  int64_t parameters = 0;
  int64_t vocabulary = 0;         // of the model
  int64_t tokenizer_entries = 0;  // token ids in use are smaller
  int64_t tokens_per_step = 0;
  std::string data;               // where the text came from
  std::vector<double> loss;       // one per finished step
  std::vector<double> grad_norm;  // likewise, before clipping
  double final_loss = 0;          // mean of the last tenth of the steps
  double held_out_loss = 0;       // NaN when interrupted
  int64_t peak_bytes = 0;         // measured high water of device memory
  // The arena planned before the first step; on the naive side intermediates come on top.
  int64_t planned_bytes = 0;
  double tokens_per_s = 0;  // median over the steps
  double seconds_s = 0;
  uint64_t seed = 0;
  std::string executor;   // "cuda", or "fast": the host executor on a CPU
  std::string attention;  // which ran (AttentionPlan::by); the same on both sides
  std::string launches;   // of a step (Model::launches)
};

struct ConvergeRequest {
  std::string config = "tiny";  // one of config_names()
  std::vector<DType> dtypes;    // of f32 and bf16; empty: the config's
  int steps = 0;                // 0: the config's
  bool quick =
      false;          // the config's short run, gradients at its end only; an explicit `steps` wins
  uint64_t seed = 1;  // of weights, batches and noise
  std::string data;   // text, a folder, JSONL or token ids; empty: licence texts of the system
  std::string tokenizer;              // a byte-pair file; empty: trained on the data
  bool padded = false;                // each example of a JSONL file in a row of its own
  std::filesystem::path token_cache;  // a folder (DataOptions::cache); empty: none
  std::optional<bool> tied;           // the head is the embedding; not set: the config's
  std::optional<int> sequence;        // tokens of one sequence
  std::optional<int> batch;           // sequences per step
  std::optional<int> vocabulary;      // rows of the embedding
  std::optional<int> accumulate;      // forward passes per step
  std::optional<int> medusa;          // heads
  std::optional<double> rate;         // learning rate at its peak
  // A folder in the layout of Hugging Face: its shape, and its weights unless it has none, in place
  // of the config's (pretrained.h); empty: none.
  std::filesystem::path load = {};
  // Where the first pair's weights go when they are trained, to SIDE-DTYPE; empty: nowhere.
  std::filesystem::path exports = {};
  bool frozen = false;             // only the Medusa heads are trained
  bool recompute = false;          // layers run again in backward, on both sides
  bool graph = true;               // on a GPU steps are captured in a CUDA graph, on both sides
  std::vector<std::string> fused;  // op_names() that the fused side has as kernels; empty: all
  // Where trainings that end early leave their state, to go on from when they are asked for again;
  // empty: nowhere.
  std::filesystem::path checkpoints;
  int checkpoint_every = 0;  // steps; 0: only when one ends early
  // Complete trainings of this very request: reported before, not run again.
  std::vector<RunReport> finished;
};

// Naive against fused from one seed, bf16; differences are fused - naive.
struct PairReport {
  uint64_t seed = 0;
  double learning_rate = 0;  // at its peak; lower than the config's when the naive run spiked there
  double last_quarter = 0, last_quarter_margin = 0;  // of the mean loss of the last steps
  double held_out = 0, held_out_margin = 0;
};

// Naive against fused for one dtype.
struct VerdictReport {
  std::string config;
  DType dtype = DType::kF32;
  std::string verdict;  // "passed", "incorrect_numerical", "nonfinite", "not_run" (interrupted)
  std::string reason;   // empty when passed
  double largest_difference = 0;  // of the largest share of its budget
  double budget = 0;              // at that step
  int step_of_largest = -1;
  int first_step_over = -1;         // its budget
  std::vector<double> differences;  // per step, as judge.h defines them for the dtype
  std::vector<double> budgets;
  std::vector<PairReport> pairs;         // of bf16
  std::vector<Equivalence> equivalence;  // of bf16
  double held_out_difference = 0;
  double held_out_budget = 0;
  double memory_ratio = 0;  // peak bytes, fused over naive
  double speed_ratio = 0;   // tokens/s, fused over naive
};

// Error of one parameter's gradient at one step, from 1.
struct ParameterError {
  int step;
  std::string parameter;
  double error, budget;  // norm of the difference over the norm of the oracle's gradient
};

// Gradients of a small model against the oracle in double (gradients.h).
struct GradientReport {
  std::string config;
  DType dtype = DType::kF32;
  std::string verdict;  // "passed" or "incorrect_numerical"
  std::string reason;   // empty when passed
  int first_step = 0;   // that failed, from 1; 0: none
  std::vector<ParameterError> parameters;
};

// How far gradients of several batches are from the reference, as shares of the reference's norm.
struct GradientError {
  double error = 0;   // norm of the difference; root mean square over the batches, as what follows
  double across = 0;  // of that, what is at right angles to the reference
  double along = 0;   // and what scales it
  double cosine = 0;  // of the angle between them, mean over the batches
  double bias = 0;    // the mean of what scales it: 0.01 is a gradient one percent too long
};

// One parameter at one state of a training.
struct StateParameter {
  int step = 0;  // finished steps
  std::string parameter;
  GradientError naive, fused;
  double budget = 0, bias_budget = 0;  // of the fused side's across and bias
};

// Gradients of both sides from the same states of a training (same_state.h).
struct StateReport {
  std::string config;
  DType dtype = DType::kF32;
  std::string reference;  // what both are compared with
  std::string verdict;    // "passed", "incorrect_numerical", "not_run"
  std::string reason;     // empty when passed
  int first_step = -1;    // the first state with a parameter over its budget
  std::vector<StateParameter> parameters;
};

// The same training again, without a graph: the same bits?
struct RepeatReport {
  std::string config;
  DType dtype = DType::kF32;
  Side side = Side::kNaive;
  int steps = 0;
  std::string launches, again;  // of a step of each
  std::string verdict;          // "passed", "nondeterministic", "not_run"
  std::string reason;           // empty when passed
  int first_step = -1;          // whose loss differs, from 0
};

namespace next_action {
struct TrainingReport;
struct PredictorReport;
struct GapReport;
}  // namespace next_action

// Called on the calling thread as things happen; each may be left out.
struct ConvergeObserver {
  std::function<void(const std::string&)> on_note;  // one line about what is done now
  std::function<void(const StepReport&)> on_step;
  std::function<void(const RunReport&)> on_run;
  std::function<void(const VerdictReport&)> on_verdict;
  std::function<void(const GradientReport&)> on_gradients;
  std::function<void(const StateReport&)> on_states;
  std::function<void(const RepeatReport&)> on_repeat;
  std::function<void(const next_action::TrainingReport&)> on_training;
  std::function<void(const next_action::PredictorReport&)> on_predictor;
  std::function<void(const next_action::GapReport&)> on_gap;
  void note(const std::string& line) const {
    if (on_note) on_note(line);
  }
};

struct ConvergeResult {
  std::vector<RunReport> runs;
  std::vector<VerdictReport> verdicts;
  std::vector<GradientReport> gradients;  // one per dtype
  std::vector<StateReport> states;        // one per dtype
  std::vector<RepeatReport> repeats;      // one per dtype and side
  bool interrupted = false;
  // 0 all passed, 1 some parted, 130 interrupted.
  int exit_code() const;
};

// The model and run that it asks for. Throws ConvergeError(2) when they cannot be trained.
ModelConfig config_of(const ConvergeRequest& request);

// Steps of all trainings that the request asks for and that are not finished.
int steps_of(const ConvergeRequest& request);

// Runs the request. `stop` (may be null) ends it after the step at hand; what was finished is
// reported. Throws ConvergeError.
ConvergeResult converge(const ConvergeRequest& request, const ConvergeObserver& observer = {},
                        const std::atomic<bool>* stop = nullptr);

}  // namespace tigon::convergence
