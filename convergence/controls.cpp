// SPDX-License-Identifier: Apache-2.0
// The list of negative controls, and the evidence against each.
#include "convergence/controls.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "convergence/scaled_ops.h"

namespace tigon::convergence {
namespace {

constexpr uint64_t kSeed = 1;
constexpr uint64_t kSeedsApart = 100;  // pairs count up from a seed

// A result times a factor, in both dtypes.
struct Scaled {
  const char *fault, *what;
  Ops<F32> (*f32)();
  Ops<BF16> (*bf16)();
};

#define TIGON_SCALED(result, factor, what)                                                         \
  {                                                                                                \
    "scaled." #result "_" #factor, what " times " #factor "/1000", ScaledOps<F32>::result<factor>, \
        ScaledOps<BF16>::result<factor>                                                            \
  }
constexpr Scaled kScaled[] = {
    TIGON_SCALED(loss_dx, 900, "dx of the loss"),
    TIGON_SCALED(loss_dx, 990, "dx of the loss"),
    TIGON_SCALED(loss_dx, 1010, "dx of the loss"),
    TIGON_SCALED(loss_dw, 900, "dw of the head"),
    TIGON_SCALED(loss_dw, 990, "dw of the head"),
    TIGON_SCALED(loss_dw, 1010, "dw of the head"),
    TIGON_SCALED(norm_dx, 900, "dx of the norms"),
    TIGON_SCALED(norm_dx, 990, "dx of the norms"),
    TIGON_SCALED(norm_dx, 1010, "dx of the norms"),
    TIGON_SCALED(norm_dw, 500, "dw of the norms"),
    TIGON_SCALED(norm_dw, 900, "dw of the norms"),
    TIGON_SCALED(norm_dw, 990, "dw of the norms"),
    TIGON_SCALED(norm_dw, 1010, "dw of the norms"),
    TIGON_SCALED(swiglu_gradients, 900, "gradients of gate and up"),
    TIGON_SCALED(swiglu_gradients, 990, "gradients of gate and up"),
    TIGON_SCALED(swiglu_gradients, 1010, "gradients of gate and up"),
};
#undef TIGON_SCALED

const Scaled* scaled(const std::string& fault) {
  const auto* found = std::find_if(std::begin(kScaled), std::end(kScaled),
                                   [&](const Scaled& s) { return s.fault == fault; });
  return found == std::end(kScaled) ? nullptr : found;
}

template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const std::vector<Control>& controls() {
  static const std::vector<Control> all = [] {
    std::vector<Control> list = {
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
        {"linear_cross_entropy.dx_of_first_chunk",
         "wrong offset: every chunk writes the first rows"},
        {"linear_cross_entropy.targets_of_first_chunk",
         "wrong offset: every chunk reads the first targets"},
        {"loss.target_off_by_one", "the class behind the target"},
        {"loss.other_gradients_zero", "only the target has a gradient"},
        {"loss.softcap_slope_missing", "missing softcap derivative: it is taken as 1"},
    };
    for (const Scaled& s : kScaled) list.push_back({s.fault, s.what});
    return list;
  }();
  return all;
}

const PartReport* ControlReport::caught() const {
  const auto found =
      std::find_if(parts.begin(), parts.end(), [](const PartReport& p) { return p.failed(); });
  return found == parts.end() ? nullptr : &*found;
}

void run_controls(const EvidenceModel& model, const std::function<void(const char*)>& plant,
                  const std::function<void(const ControlReport&)>& sink) {
  Evidence evidence(model, kSeed);
  std::vector<Control> all = {{"", "no fault"}};
  all.insert(all.end(), controls().begin(), controls().end());
  for (const Control& control : all) {
    const Scaled* s = scaled(control.fault);
    ControlReport report{control, {}, 0};
    plant(s == nullptr ? control.fault.c_str() : "");
    report.seconds_s = seconds_of([&] {
      report.parts = s == nullptr ? evidence.of(fused_ops<F32>(), fused_ops<BF16>())
                                  : evidence.of(s->f32(), s->bf16());
    });
    plant("");
    sink(report);
  }
}

void run_seeds(const EvidenceModel& model, int n, const std::atomic<bool>& stop,
               const std::function<void(const SeedReport&)>& sink) {
  for (int i = 0; i < n && !stop; ++i) {
    SeedReport report;
    report.seed = kSeedsApart * static_cast<uint64_t>(i) + 1;
    report.seconds_s = seconds_of([&] {
      report.parts = Evidence(model, report.seed).of(fused_ops<F32>(), fused_ops<BF16>());
    });
    sink(report);
  }
}

}  // namespace tigon::convergence
