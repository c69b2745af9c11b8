// SPDX-License-Identifier: Apache-2.0
// The list of negative controls and the evidence that each must make fail.
#include "convergence/controls.h"

#include <chrono>
#include <type_traits>

#include "convergence/gradients.h"
#include "convergence/judge.h"
#include "convergence/micro.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

constexpr uint64_t kSeed = 1;

// The naive side's f32 losses and those of its twin: the same for all faults.
struct NaiveRuns {
  RunReport run, twin;
};

RunReport losses(const Ops<F32>& ops, Side side) {
  ModelConfig config = micro_config(false);
  config.held_out_batches = 1;
  TrainSettings settings;
  settings.side = side;
  settings.seed = kSeed;
  settings.steps = settings.horizon = kF32TwinSteps;
  return train<F32>(config, ops, micro_data(config), settings);
}

template <class P>
bool gradients_fail(GradientOracle& oracle, ControlReport& report) {
  const GradientReport g = check_gradients<P>(fused_ops<P>(), kSeed, oracle);
  if (g.verdict == "passed") return false;
  report.dtype = name_of(g.dtype);
  report.step = g.first_step;
  report.reason = g.reason;
  return true;
}

bool losses_fail(const NaiveRuns& naive, ControlReport& report) {
  const RunReport fused = losses(fused_ops<F32>(), Side::kFused);
  const VerdictReport v = judge({&naive.run, &fused, {&naive.twin}});
  if (v.verdict == "passed") return false;
  report.dtype = name_of(DType::kF32);
  report.step = v.first_step_over + 1;
  report.reason = v.reason;
  return true;
}

}  // namespace

const std::vector<Control>& controls() {
  static const std::vector<Control> all = {
      {"rms_norm.sum_for_mean", "wrong normaliser: the squares are not divided by their number"},
      {"rms_norm.dw_in_bf16", "the norm's weight gradient is summed in bf16"},
      {"column_sums.block_lost", "the rows of the last block are lost in a weight gradient"},
      {"linear_cross_entropy.last_chunk_lost", "dropped tail rows: the last, shorter chunk"},
      {"rope.sin_sign", "swapped rotary halves: turned the other way"},
      {"rope.backward_turns_forward", "the rotary gradient is turned as forward turns"},
      {"swiglu.derivative_term_missing", "the gate's derivative lacks a term"},
      {"swiglu.gradients_swapped", "the gradients of gate and up are exchanged"},
      {"linear_cross_entropy.dw_not_cleared", "stale gradient: it is added to the last step's"},
      {"linear_cross_entropy.dw_summed_as_stored", "bf16 accumulation over chunks"},
      {"loss.ignored_counted", "ignore_index: ignored rows count in the mean"},
      {"loss.ignore_index_unused", "ignore_index is not looked at"},
      {"linear_cross_entropy.dx_of_first_chunk", "wrong offset: every chunk writes the first rows"},
      {"linear_cross_entropy.targets_of_first_chunk",
       "wrong offset: every chunk reads the first targets"},
      {"loss.target_off_by_one", "the class behind the target"},
      {"loss.other_gradients_zero", "only the target has a gradient"},
      {"loss.softcap_slope_missing", "missing softcap derivative: it is taken as 1"},
  };
  return all;
}

void run_controls(const std::function<void(const char*)>& plant,
                  const std::function<void(const ControlReport&)>& sink) {
  const NaiveRuns naive{losses(naive_ops<F32>(), Side::kNaive),
                        losses(naive_ops<F32>(), Side::kNoise)};
  GradientOracle f32_oracle, bf16_oracle;
  std::vector<Control> all = {{"", "no fault"}};
  all.insert(all.end(), controls().begin(), controls().end());
  for (const Control& control : all) {
    const auto start = std::chrono::steady_clock::now();
    plant(control.fault.c_str());
    ControlReport report;
    report.control = control;
    report.caught = gradients_fail<F32>(f32_oracle, report) ||
                    gradients_fail<BF16>(bf16_oracle, report) || losses_fail(naive, report);
    plant("");
    report.seconds_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    sink(report);
  }
}

}  // namespace tigon::convergence
