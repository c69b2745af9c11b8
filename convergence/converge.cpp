// SPDX-License-Identifier: Apache-2.0
// From a request to runs and verdicts.
#include "convergence/converge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convergence/compare.h"
#include "convergence/gradients.h"
#include "convergence/judge.h"
#include "convergence/train.h"

namespace tigon::convergence {
ModelConfig config_of(const ConvergeRequest& r) {
  std::optional<ModelConfig> found = find_config(r.config);
  if (!found)
    throw ConvergeError(
        2, fmt::format("no model '{}': there are {}", r.config, fmt::join(config_names(), ", ")));
  ModelConfig c = *found;
  if (r.quick) c.steps = c.quick_steps;
  if (r.steps != 0) c.steps = r.steps;
  if (r.tied) c.tied = *r.tied;
  if (r.sequence) c.sequence = *r.sequence;
  if (r.batch) c.batch = *r.batch;
  if (r.vocabulary) c.vocabulary = *r.vocabulary;
  if (r.accumulate) c.accumulate = *r.accumulate;
  if (r.medusa) c.medusa = *r.medusa;
  c.frozen = c.frozen || r.frozen;
  c.recompute = c.recompute || r.recompute;
  c.graph = c.graph && r.graph;
  if (!r.dtypes.empty()) c.dtypes = r.dtypes;
  if (const std::string problem = problem_with(c); !problem.empty())
    throw ConvergeError(2, fmt::format("model {}: {}", c.name, problem));
  return c;
}

namespace {

template <class P>
Ops<P> asked_ops(const ConvergeRequest& r) {
  return r.fused.empty() ? fused_ops<P>() : mixed_ops<P>(r.fused);
}

bool stopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

void note(const ConvergeObserver& observer, const std::string& line) {
  if (observer.on_note) observer.on_note(line);
}

// A training of one dtype.
struct Planned {
  Side side;
  int twin, steps;
};

// In the order in which they run: naive, fused, and twins of both.
std::vector<Planned> trainings_of(DType dtype, int steps) {
  const bool f32 = dtype == DType::kF32;
  std::vector<Planned> all = {{Side::kNaive, 0, steps}, {Side::kFused, 0, steps}};
  for (int twin = 0; twin < (f32 ? kF32Twins : kBF16Twins); ++twin)
    all.push_back({Side::kNoise, twin, f32 ? std::min(steps, kF32TwinSteps) : steps});
  for (int twin = 1; twin <= (f32 ? 0 : kBF16FusedTwins); ++twin)
    all.push_back({Side::kFused, twin, steps});
  return all;
}

// The report of such a training, if it was finished before.
template <class Training>
const RunReport* finished_run(const std::vector<RunReport>& finished, DType dtype,
                              const Training& s) {
  for (const RunReport& r : finished)
    if (r.dtype == dtype && r.side == s.side && r.twin == s.twin && r.steps == s.steps) return &r;
  return nullptr;
}

std::filesystem::path checkpoint_of(const Comparison& c, DType dtype, const TrainSettings& s) {
  if (c.checkpoints.empty()) return {};
  return c.checkpoints / fmt::format("{}-{}-{}{}.safetensors", c.config.name, name_of(dtype),
                                     name_of(s.side), s.twin == 0 ? "" : std::to_string(s.twin));
}

// Runs one side and keeps its report; false when it was stopped.
template <class P>
bool run_side(const Comparison& c, const Ops<P>& ops, TrainSettings settings,
              ConvergeResult& result) {
  constexpr DType kType = dtype_of<typename P::Elem>;
  if (const RunReport* before = finished_run(c.finished, kType, settings)) {
    result.runs.push_back(*before);
    return true;
  }
  settings.checkpoint = checkpoint_of(c, kType, settings);
  settings.checkpoint_every = c.checkpoint_every;
  settings.seed = c.seed;
  settings.horizon = c.config.steps;
  settings.stop = c.stop;
  settings.on_step = c.observer.on_step;
  RunReport report = train<P>(c.config, ops, c.data, settings);
  report.data = c.source;
  result.runs.push_back(report);
  if (c.observer.on_run) c.observer.on_run(report);
  result.interrupted = result.interrupted || !report.complete;
  return report.complete;
}

template <class P>
void check_first_steps(const Ops<P>& fused, uint64_t seed, const ConvergeObserver& observer,
                       ConvergeResult& result) {
  GradientOracle oracle;
  result.gradients.push_back(check_gradients<P>(fused, seed, oracle));
  if (observer.on_gradients) observer.on_gradients(result.gradients.back());
}

}  // namespace

template <class P>
void compare(const Comparison& c, const Ops<P>& naive, const Ops<P>& fused,
             ConvergeResult& result) {
  const size_t first = result.runs.size();
  for (const Planned& planned : trainings_of(dtype_of<typename P::Elem>, c.config.steps)) {
    TrainSettings settings;
    settings.side = planned.side;
    settings.twin = planned.twin;
    settings.steps = planned.steps;
    if (!run_side<P>(c, planned.side == Side::kFused ? fused : naive, settings, result)) return;
  }
  Trial trial{&result.runs[first], &result.runs[first + 1], {}};
  for (size_t i = first + 2; i < result.runs.size(); ++i) {
    const RunReport& twin = result.runs[i];
    (twin.side == Side::kNoise ? trial.twins : trial.fused_twins).push_back(&twin);
  }
  result.verdicts.push_back(judge(trial));
  if (c.observer.on_verdict) c.observer.on_verdict(result.verdicts.back());
}

template void compare<F32>(const Comparison&, const Ops<F32>&, const Ops<F32>&, ConvergeResult&);
template void compare<BF16>(const Comparison&, const Ops<BF16>&, const Ops<BF16>&, ConvergeResult&);

int steps_of(const ConvergeRequest& request) {
  const ModelConfig config = config_of(request);
  int steps = 0;
  for (const DType dtype : config.dtypes)
    for (const Planned& planned : trainings_of(dtype, config.steps))
      if (!finished_run(request.finished, dtype, planned)) steps += planned.steps;
  return steps;
}

ConvergeResult converge(const ConvergeRequest& request, const ConvergeObserver& observer,
                        const std::atomic<bool>* stop) {
  const ModelConfig config = config_of(request);
  const Corpus corpus = read_corpus(request.data);
  const TokenData data(corpus, config.vocabulary, config.sequence,
                       {request.tokenizer, request.padded, request.token_cache});
  note(observer,
       fmt::format("{}: {:.2f} million parameters, {} steps of {} tokens; {}: {} file(s), "
                   "{} token ids, {} training and {} held-out tokens",
                   config.name, static_cast<double>(config.parameters()) * 1e-6, config.steps,
                   config.tokens_per_step(), corpus.source, corpus.files, data.entries(),
                   data.train_tokens(), data.held_out_tokens()));
  const Comparison comparison{config,          data, corpus.source,       request.seed,
                              observer,        stop, request.checkpoints, request.checkpoint_every,
                              request.finished};
  ConvergeResult result;
  for (DType type : config.dtypes) {
    if (stopped(stop)) result.interrupted = true;
    if (result.interrupted) break;
    if (type == DType::kF32) {
      check_first_steps<F32>(asked_ops<F32>(request), request.seed, observer, result);
      compare<F32>(comparison, naive_ops<F32>(), asked_ops<F32>(request), result);
    } else {
      check_first_steps<BF16>(asked_ops<BF16>(request), request.seed, observer, result);
      compare<BF16>(comparison, naive_ops<BF16>(), asked_ops<BF16>(request), result);
    }
  }
  return result;
}

int ConvergeResult::exit_code() const {
  if (interrupted) return 130;
  const auto passed = [](const auto& reports) {
    return std::all_of(reports.begin(), reports.end(),
                       [](const auto& r) { return r.verdict == "passed"; });
  };
  return passed(verdicts) && passed(gradients) && !verdicts.empty() ? 0 : 1;
}

}  // namespace tigon::convergence
