// SPDX-License-Identifier: Apache-2.0
// Every combination of the loss options, for the tests of both losses.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "kernels/loss/options.h"
#include "reference/tests/call.h"

namespace tigon::reference {

// reduction, softcap, label_smoothing, z_loss, whether an upstream gradient and class weights are
// given
using LossCase = std::tuple<Reduction, double, double, double, bool, bool>;

inline auto all_loss_options() {
  return testing::Combine(testing::Values(Reduction::kMean, Reduction::kSum, Reduction::kNone),
                          testing::Values(0.0, 2.0), testing::Values(0.0, 0.125),
                          testing::Values(0.0, 0.0625), testing::Bool(), testing::Bool());
}

inline std::string loss_case_name(const testing::TestParamInfo<LossCase>& info) {
  const auto [reduction, softcap, smoothing, z_loss, has_dloss, has_weights] = info.param;
  constexpr const char* kNames[] = {"mean", "sum", "none"};
  return std::string(kNames[static_cast<int>(reduction)]) + (softcap > 0 ? "_softcap" : "") +
         (smoothing > 0 ? "_smoothing" : "") + (z_loss > 0 ? "_zloss" : "") +
         (has_dloss ? "_dloss" : "") + (has_weights ? "_weights" : "");
}

inline Binding loss_setting(const LossCase& c, Binding axes) {
  axes["reduction"] = static_cast<double>(std::get<0>(c));
  axes["softcap"] = std::get<1>(c);
  axes["label_smoothing"] = std::get<2>(c);
  axes["z_loss"] = std::get<3>(c);
  axes["ignore_index"] = 2;  // a class like any other
  for (const char* result : {"z_part", "accuracy", "entropy"}) axes[result] = 1;  // asked for
  return axes;
}

// Class weights, if the case has them.
inline void add_class_weights(const LossCase& c, int64_t vocabulary, Values* in) {
  if (!std::get<5>(c)) return;
  std::vector<double>& weights = (*in)["class_weight"] = Random(9).normal(vocabulary, 0.25);
  for (double& w : weights) w = static_cast<float>(1.5 + w);
}

// One value per loss.
inline std::vector<double> loss_upstream(const LossCase& c, int64_t tokens) {
  return Random(7).normal(std::get<0>(c) == Reduction::kNone ? tokens : 1);
}

}  // namespace tigon::reference
