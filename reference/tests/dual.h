// SPDX-License-Identifier: Apache-2.0
// Derivatives of an oracle's forward by dual numbers, to check its hand-written backward.
#pragma once
#include <Eigen/Core>
#include <unsupported/Eigen/AutoDiff>

#include "reference/tests/call.h"

namespace tigon::reference {

// A value and its derivative by one variable.
using Dual = Eigen::AutoDiffScalar<Eigen::Matrix<double, 1, 1>>;
using DualPolicy = Policy<Dual, Dual>;

// d sum_i <upstream_i, output_i> / d `variable`, with one run of `forward` for each element.
template <template <class> class Pass, class Run>
std::vector<double> dual_gradient(const Binding& setting, const Values& inputs,
                                  const std::string& variable, const Values& upstream,
                                  Run forward) {
  std::vector<double> gradient(inputs.at(variable).size());
  for (size_t i = 0; i < gradient.size(); ++i) {
    Call<Pass<DualPolicy>> call(setting, inputs);
    call.at(variable, int64_t(i)).derivatives()[0] = 1;
    forward(call.args);
    for (const auto& [output, weight] : upstream)
      for (size_t k = 0; k < weight.size(); ++k)
        gradient[i] += weight[k] * call.at(output, int64_t(k)).derivatives()[0];
  }
  return gradient;
}

}  // namespace tigon::reference
