// SPDX-License-Identifier: Apache-2.0
// The trainings of a comparison: pairs of both sides, the twin of f32, and both sides once more.
#include "convergence/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "convergence/judge.h"
#include "convergence/pretrained.h"
#include "convergence/same_state.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

constexpr int kRepeatSteps = 20;                                 // of the fused side
constexpr const char* kAnyOrder = "backward adds in any order";  // of AttentionPlan::by

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// A training of one dtype.
struct Planned {
  Side side;
  int twin, steps;
  double learning_rate;
};

int pairs_of(DType dtype) { return dtype == DType::kF32 ? kF32Pairs : kBF16Pairs; }

// In the order in which they run: naive and fused of each pair, and f32's twin.
std::vector<Planned> trainings_of(DType dtype, const ModelConfig& c) {
  std::vector<Planned> all;
  for (int pair = 0; pair < pairs_of(dtype); ++pair)
    for (const Side side : {Side::kNaive, Side::kFused})
      all.push_back({side, pair, c.steps, c.learning_rate});
  if (dtype == DType::kF32)
    all.push_back({Side::kNoise, 0, std::min(c.steps, kF32TwinSteps), c.learning_rate});
  return all;
}

// The report of such a training, if it was finished before.
const RunReport* finished_run(const std::vector<RunReport>& finished, DType dtype,
                              const Planned& p) {
  for (const RunReport& r : finished)
    if (r.dtype == dtype && r.side == p.side && r.twin == p.twin && r.steps == p.steps &&
        r.learning_rate == p.learning_rate)
      return &r;
  return nullptr;
}

// The trainings of one comparison. False, or nothing, when it was stopped.
template <class P>
class Trainings {
 public:
  Trainings(const Comparison& c, const Ops<P>& naive, const Ops<P>& fused, ConvergeResult& result)
      : c_(c), naive_(naive), fused_(fused), result_(result) {}

  // Runs one, or takes what was finished before. The result's runs move.
  std::optional<size_t> run(const Planned& planned) {
    const size_t index = result_.runs.size();
    if (const RunReport* before = finished_run(c_.finished, kType, planned)) {
      result_.runs.push_back(*before);
      return index;
    }
    TrainSettings settings = settings_of(planned);
    settings.checkpoint = checkpoint_of(planned);
    settings.checkpoint_every = c_.checkpoint_every;
    settings.on_step = c_.observer.on_step;
    const ModelConfig config = config_at(planned.learning_rate);
    if (!c_.exports.empty() && planned.twin == 0 && planned.side != Side::kNoise) {
      settings.states = {planned.steps};
      settings.on_state = [&](int, const std::vector<float>& weights) {
        export_pretrained(c_.exports / fmt::format("{}-{}", name_of(planned.side), name_of(kType)),
                          config, weights);
      };
    }
    RunReport report = train<P>(config, ops_of(planned.side), c_.data, settings);
    report.data = c_.source;
    result_.runs.push_back(report);
    if (c_.observer.on_run) c_.observer.on_run(report);
    result_.interrupted = result_.interrupted || !report.complete;
    if (!report.complete) return std::nullopt;
    return index;
  }

  // Naive and fused from one seed. When the naive run spikes both are run at half the rate.
  std::optional<std::array<size_t, 2>> pair(int twin) {
    Planned planned{Side::kNaive, twin, c_.config.steps, c_.config.learning_rate};
    std::optional<size_t> naive = run(planned);
    for (int i = 0; kType != DType::kF32 && naive && i < kMostHalvings; ++i) {
      const RunReport& r = result_.runs[*naive];
      const int spike = first_spike(r);
      if (spike < 0) break;
      planned.learning_rate /= 2;
      c_.observer.note(
          fmt::format("the naive run of seed {} spikes at step {}: the pair is run "
                      "again at a rate of {:.3g}",
                      r.seed, spike + 1, planned.learning_rate));
      naive = run(planned);
    }
    if (!naive) return std::nullopt;
    planned.side = Side::kFused;
    const std::optional<size_t> fused = run(planned);
    if (!fused) return std::nullopt;
    return std::array{*naive, *fused};
  }

  // One more time, without a graph, as far as `steps`; nothing of it is shown.
  RunReport again(const RunReport& before, int steps, const std::vector<int>& states,
                  std::vector<TrainingState>* found) const {
    TrainSettings settings = settings_of({before.side, before.twin, steps, before.learning_rate});
    settings.states = states;
    settings.on_state = [&](int step, std::vector<float> weights) {
      found->push_back({step, std::move(weights)});
    };
    ModelConfig config = config_at(before.learning_rate);
    config.graph = false;
    return train<P>(config, ops_of(before.side), c_.data, settings);
  }

 private:
  static constexpr DType kType = dtype_of<typename P::Elem>;

  const Ops<P>& ops_of(Side side) const { return side == Side::kFused ? fused_ : naive_; }

  ModelConfig config_at(double rate) const {
    ModelConfig config = c_.config;
    config.learning_rate = rate;
    return config;
  }

  TrainSettings settings_of(const Planned& planned) const {
    TrainSettings s;
    s.side = planned.side;
    s.twin = planned.twin;
    s.seed = c_.seed + static_cast<uint64_t>(planned.side == Side::kNoise ? 0 : planned.twin);
    s.steps = planned.steps;
    s.horizon = c_.config.steps;
    s.stop = c_.stop;
    s.weights = &c_.weights;
    return s;
  }

  std::filesystem::path checkpoint_of(const Planned& p) const {
    if (c_.checkpoints.empty()) return {};
    const bool slower = p.learning_rate != c_.config.learning_rate;
    return c_.checkpoints / fmt::format("{}-{}-{}{}{}.safetensors", c_.config.name, name_of(kType),
                                        name_of(p.side), p.twin == 0 ? "" : std::to_string(p.twin),
                                        slower ? fmt::format("-rate-{:.3g}", p.learning_rate) : "");
  }

  const Comparison& c_;
  const Ops<P>&naive_, &fused_;
  ConvergeResult& result_;
};

RepeatReport repeat_of(const RunReport& first, const RunReport& again) {
  RepeatReport r;
  r.config = first.config;
  r.dtype = first.dtype;
  r.side = first.side;
  r.steps = again.steps;
  r.launches = first.launches;
  r.again = again.launches;
  r.verdict = "passed";
  for (size_t i = 0; i < again.loss.size() && r.first_step < 0; ++i)
    if (!same_bits(again.loss[i], first.loss[i])) r.first_step = static_cast<int>(i);
  if (r.first_step < 0) return r;
  r.reason = fmt::format("the loss of step {} has other bits", r.first_step + 1);
  r.verdict = "nondeterministic";
  if (first.attention.find(kAnyOrder) == std::string::npos) return r;
  r.verdict = "not_run";
  r.reason += ": attention by " + first.attention;
  return r;
}

// The gradients at the states of a naive training.
template <class P>
void check_states(const Comparison& c, const std::vector<TrainingState>& states,
                  const Ops<P>& fused, ConvergeResult& result) {
  StateReport report;
  report.config = c.config.name;
  report.dtype = dtype_of<typename P::Elem>;
  report.verdict = "not_run";
  report.reference = reference_of(c.config, report.dtype, report.reason);
  if (!report.reference.empty()) {
    try {
      for (const TrainingState& s : states)
        compare_state<P>(c.config, fused, reference_at<P>(c.config, c.data, c.seed, s), report);
    } catch (const DeviceOutOfMemory& e) {
      report.verdict = "not_run";
      report.reason = e.what();
    }
  }
  result.states.push_back(report);
  if (c.observer.on_states) c.observer.on_states(report);
}

// Both sides of a pair once more, which must give the same bits, and the gradients at states of the
// naive one.
template <class P>
void check_again(const Comparison& c, const Pair& pair, const Trainings<P>& trainings,
                 const Ops<P>& fused, ConvergeResult& result) {
  const int steps = pair.naive->steps;
  c.observer.note(fmt::format("{} {}: both sides again, and gradients of both from the same states",
                              c.config.name, name_of(pair.naive->dtype)));
  std::vector<TrainingState> states;
  const std::vector<int> points = c.quick ? std::vector{steps} : state_steps(c.config, steps);
  const RunReport naive = trainings.again(*pair.naive, steps, points, &states);
  const RunReport other = trainings.again(*pair.fused, std::min(steps, kRepeatSteps), {}, nullptr);
  if (!naive.complete || other.steps < std::min(steps, kRepeatSteps)) {
    result.interrupted = true;
    return;
  }
  for (const RepeatReport& r : {repeat_of(*pair.naive, naive), repeat_of(*pair.fused, other)}) {
    result.repeats.push_back(r);
    if (c.observer.on_repeat) c.observer.on_repeat(r);
  }
  check_states<P>(c, states, fused, result);
}

}  // namespace

template <class P>
std::optional<Pair> compare_curves(const Comparison& c, const Ops<P>& naive, const Ops<P>& fused,
                                   ConvergeResult& result) {
  constexpr DType kType = dtype_of<typename P::Elem>;
  Trainings<P> trainings(c, naive, fused, result);
  std::vector<std::array<size_t, 2>> pairs;
  for (int i = 0; i < pairs_of(kType); ++i) {
    const auto pair = trainings.pair(i);
    if (!pair) return std::nullopt;
    pairs.push_back(*pair);
  }
  Trial trial;
  if (kType == DType::kF32) {
    const auto twin = trainings.run(trainings_of(kType, c.config).back());
    if (!twin) return std::nullopt;
    trial.twin = &result.runs[*twin];
  }
  for (const auto& [n, f] : pairs) trial.pairs.push_back({&result.runs[n], &result.runs[f]});
  result.verdicts.push_back(judge(trial));
  if (c.observer.on_verdict) c.observer.on_verdict(result.verdicts.back());
  return trial.pairs.front();
}

template <class P>
void compare(const Comparison& c, const Ops<P>& naive, const Ops<P>& fused,
             ConvergeResult& result) {
  if (const std::optional<Pair> pair = compare_curves(c, naive, fused, result))
    check_again(c, *pair, Trainings<P>(c, naive, fused, result), fused, result);
}

template std::optional<Pair> compare_curves<F32>(const Comparison&, const Ops<F32>&,
                                                 const Ops<F32>&, ConvergeResult&);
template std::optional<Pair> compare_curves<BF16>(const Comparison&, const Ops<BF16>&,
                                                  const Ops<BF16>&, ConvergeResult&);

int steps_to_train(const ModelConfig& config, DType dtype, const std::vector<RunReport>& finished) {
  int steps = 0;
  for (const Planned& planned : trainings_of(dtype, config))
    if (finished_run(finished, dtype, planned) == nullptr) steps += planned.steps;
  return steps;
}

template void compare<F32>(const Comparison&, const Ops<F32>&, const Ops<F32>&, ConvergeResult&);
template void compare<BF16>(const Comparison&, const Ops<BF16>&, const Ops<BF16>&, ConvergeResult&);

}  // namespace tigon::convergence
