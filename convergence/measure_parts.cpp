// SPDX-License-Identifier: Apache-2.0
// Steps on random tokens under a meter, and their memory laid out by part.
#include "convergence/measure_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "convergence/converge.h"
#include "convergence/experiment.h"
#include "convergence/maxlen.h"
#include "convergence/statistics.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

std::string show(int64_t bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  const auto size = static_cast<double>(bytes);
  return size < kGiB ? fmt::format("{:.2f} MiB", size / kMiB)
                     : fmt::format("{:.2f} GiB", size / kGiB);
}

int busiest_phase(const ArenaPlan& arena) {
  const auto less = [](const auto& a, const auto& b) { return a.sum() < b.sum(); };
  return static_cast<int>(std::max_element(arena.phases.begin(), arena.phases.end(), less) -
                          arena.phases.begin());
}

template <class P>
class Trial {
 public:
  explicit Trial(const PartsRequest& request)
      : request_(request), ops_(mixed_ops<P>(request.kernels)) {}

  // Planned figures; true when they are within the limit.
  bool plan(PartsReport& report) const {
    const int64_t beside =
        planned_intermediates(request_.config, dtype_of<typename P::Elem>, request_.kernels);
    const ArenaPlan arena = Model<P>::plan_arena(request_.config, ops_);
    report.attention = Model<P>::attention_of(request_.config);
    report.planned_bytes = arena.bytes + beside;
    report.peak = peak_of(arena, Part::kLoss, arena.loss_phase, beside);
    return report.planned_bytes <= report.limit_bytes;
  }

  void run(PartsReport& report) const {
    const ModelConfig& config = request_.config;
    Model<P>::tune(config, ops_);
    const auto before = static_cast<int64_t>(device_memory_stats().current);
    Model<P> model(config, ops_);
    model.set_weights(initial_weights(config, 1));
    const std::vector<Batch> batches(static_cast<size_t>(config.accumulate),
                                     random_batch(config.tokens_per_pass(), config.vocabulary));
    PartMeter meter;
    std::vector<StepParts> measured;
    std::vector<double> wall;
    model.step(batches, {0, 0.0}, &meter);  // makes the meter's events, too
    // The next two are one by one and the capture.
    const int untimed = on_gpu() && config.graph ? 2 : 0;
    for (int i = -untimed; i < request_.steps; ++i) {
      done(i < 0 ? 1 : i + 1);
      const auto start = std::chrono::steady_clock::now();
      model.step(batches, {0, 0.0});
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      if (i >= 0) wall.push_back(seconds.count());
    }
    report.launches = model.launches();
    for (int i = 0; i < request_.steps; ++i) {
      done(request_.steps + 1 + i);
      model.step(batches, {0, 0.0}, &meter);
      measured.push_back(meter.read());
    }
    const StepParts step = median(
        measured, [](const StepParts& a, const StepParts& b) { return a.step_s < b.step_s; });
    report.attention = Model<P>::attention_of(config);
    report.products = model.products_alone();
    report.seconds = step.seconds;
    report.step_s = step.step_s;
    report.tokens_per_s =
        static_cast<double>(config.tokens_per_step()) / median(wall, std::less<>());
    report.intermediates = step.intermediates;
    report.peak_bytes = step.high_water - before;
    report.peak = peak_of(Model<P>::plan_arena(config, ops_), step.at_high_water,
                          step.phase_of_high_water, step.intermediates[step.at_high_water]);
    // What libraries keep for themselves.
    report.peak.bytes[Part::kOther] += report.peak_bytes - report.peak.total();
  }

 private:
  void done(int steps) const {
    if (request_.on_step) request_.on_step(steps, 2 * request_.steps + 1);
  }

  const PartsRequest& request_;
  Ops<P> ops_;
};

// Runs it; false, with the reason, when memory runs out.
template <class P>
bool run_within_memory(const Trial<P>& trial, PartsReport& report) {
  try {
    trial.run(report);
  } catch (const OutOfMemory& error) {
    report.reason = error.what();
    return false;
  } catch (const DeviceOutOfMemory& error) {
    report.reason = error.what();
    return false;
  }
  if (report.peak_bytes <= report.limit_bytes) return true;
  report.reason =
      fmt::format("a run took {} of {}", show(report.peak_bytes), show(report.limit_bytes));
  return false;
}

template <class P>
PartsReport measure(const PartsRequest& request) {
  PartsReport report;
  report.limit_bytes =
      request.memory > 0 ? request.memory : static_cast<int64_t>(device_free_bytes());
  const Trial<P> trial(request);
  const bool planned = trial.plan(report);
  if (!planned)
    report.reason =
        fmt::format("planned {} of {}", show(report.planned_bytes), show(report.limit_bytes));
  const bool run = !request.plan_only && (planned || request.confirm);
  const bool fits = run ? run_within_memory(trial, report) : planned;
  report.outcome = !fits ? Outcome::kOutOfMemory : run ? Outcome::kMeasured : Outcome::kPlanned;
  return report;
}

}  // namespace

const char* name_of(Outcome outcome) {
  constexpr const char* kNames[] = {"measured", "planned", "out of memory"};
  return kNames[static_cast<size_t>(outcome)];
}

PeakMemory peak_of(const ArenaPlan& arena, Part part, int phase, int64_t intermediates) {
  const int at = intermediates > 0 ? phase : busiest_phase(arena);
  PeakMemory peak{arena.phases.at(static_cast<size_t>(at)), 0};
  peak.unused = arena.bytes - peak.bytes.sum();
  peak.bytes[part] += intermediates;
  return peak;
}

PartsReport measure_parts(const PartsRequest& request) {
  return request.dtype == DType::kF32 ? measure<F32>(request) : measure<BF16>(request);
}

std::vector<std::string> ops_of(const ModelConfig& c) {
  std::vector<std::string> ops;
  if (c.norm == NormKind::kRmsNorm || c.qk_norm) ops.push_back(op_name<rms_norm::Forward>());
  if (c.norm == NormKind::kLayerNorm) ops.push_back(op_name<layer_norm::Forward>());
  ops.push_back(op_name<rope::Forward>());
  ops.push_back(c.activation == Activation::kSwiglu ? op_name<swiglu::Forward>()
                                                    : op_name<geglu::Forward>());
  ops.push_back(op_name<linear_cross_entropy::Forward>());
  return ops;
}

}  // namespace tigon::convergence
