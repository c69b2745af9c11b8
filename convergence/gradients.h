// SPDX-License-Identifier: Apache-2.0
// Gradients of the first steps of a small model against the oracle in double, parameter by
// parameter.
#pragma once
#include <string>
#include <vector>

#include "convergence/converge.h"
#include "convergence/ops.h"
#include "convergence/reference_model.h"

namespace tigon::convergence {

inline constexpr int kGradientSteps = 3;

// One row per token in every chunk of the head, ignored targets, a softcap, and weights that make
// every term of every gradient matter. In f32 attention has a softcap, too, with which it is always
// our own; in bf16 it has none, so that cuDNN's is what is checked where that runs.
ModelConfig gradient_config(DType dtype);

// What the oracle said of the weights it was asked last, by step: most checks of a dtype ask the
// same.
class GradientOracle {
 public:
  const Doubles& gradient(const ModelConfig& config, int step, const Doubles& weights,
                          const Batch& batch);

 private:
  struct Answer {
    Doubles weights, gradient;
  };
  Answer answers_[kGradientSteps];
};

// Trains gradient_config(dtype) for three steps. A parameter's error is the norm of its difference
// to the oracle's gradient over the norm of that, at the weights that the model really has.
// Rounding allows
//     1.5 u sqrt(R / 3),
// R the roundings on the longest path from the loss to a parameter and back, each of at most u: 24
// stored tensors of a layer and 6 around them, and in f32, where nothing else is that large, the
// terms of the sums of its products. Independent errors add as squares and have a variance of u^2 /
// 3; the error is a norm over many of them, which hardly leaves their deviation.
template <class P>
GradientReport check_gradients(const Ops<P>& ops, uint64_t seed, GradientOracle& oracle);

}  // namespace tigon::convergence
