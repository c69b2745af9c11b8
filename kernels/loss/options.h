// SPDX-License-Identifier: Apache-2.0
// Options that cross_entropy and linear_cross_entropy share.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon {

enum class Reduction : int { kMean, kSum, kNone };

// With x the row's logits, y its target, p = softmax(x), lse = log sum exp(x), a = label_smoothing:
//   x <- softcap * tanh(x / softcap)                          when softcap > 0, before everything
//   loss = (1 - a) (lse - x_y) + a (lse - mean(x)) + z_loss * lse^2
//   dloss/dx_i = (1 + 2 z_loss lse) p_i - a / V - (1 - a) [i = y], times the softcap's derivative
// mean divides by the number of rows that are not ignored; when all are ignored, loss and gradient
// are 0. (Label smoothing: Szegedy et al. 2016; z_loss: Chowdhery et al. 2022, PaLM; softcap: Gemma
// Team 2024, Gemma 2; class weights, ignore_index and reductions: torch.nn.CrossEntropyLoss.) An
// ignored row gives loss 0 and gradient 0 and its logits do not matter. A target that is neither
// ignore_index nor in [0, V) is never used as an index: its row's loss and gradient are NaN.
//
// With normaliser n, mean divides everything by n[0] and counts nothing: the rows of all steps and
// devices over which a gradient is accumulated, which only the caller knows. n = 0 gives 0.
//
// With class_weight w:
//   loss = (1 - a) w_y (lse - x_y) + a / V sum_i w_i (lse - x_i) + z_loss * lse^2
// and mean divides by the sum of w_y over the rows that are not ignored (loss and gradient are 0
// where that is 0), but z_loss * lse^2, which has no weight, by their number.
//
// Beside the loss, as [T] with reduction none, else added or averaged over the rows that are not
// ignored: z_part = z_loss lse^2; accuracy, 1 where y is the first class with the largest logit,
// else 0 (NaN for an invalid y); entropy = -sum_i p_i log p_i. They have no gradient.
struct LossOptions {
  int64_t ignore_index = -100;
  float label_smoothing = 0.0f;
  float z_loss = 0.0f;
  float softcap = 0.0f;
  Reduction reduction = Reduction::kMean;
};

constexpr void loss_options(auto&& f) {
  f(option(&LossOptions::ignore_index, "ignore_index"));
  f(option(&LossOptions::label_smoothing, "label_smoothing"));
  f(option(&LossOptions::z_loss, "z_loss"));
  f(option(&LossOptions::softcap, "softcap"));
  f(option(&LossOptions::reduction, "reduction", {"mean", "sum", "none"}));
}

// Length of the loss and of its upstream gradient: one per token with reduction none, else one.
constexpr Size loss_length(Axis tokens) {
  return {"L",
          [](const Binding& b, Axis t) {
            const bool is_none = b.at("reduction") == static_cast<double>(Reduction::kNone);
            return is_none ? b.at(t.symbol) : 1.0;
          },
          tokens};
}

// Class weights [V] and the normaliser [1], and what is returned beside the loss, of a signature
// that has them.
template <class Args>
constexpr void loss_inputs(auto&& f, Axis vocabulary) {
  f(on_request(in(&Args::class_weight, "class_weight", {vocabulary})));
  f(on_request(in(&Args::normaliser, "normaliser", {1})));
}
template <class Args>
constexpr void loss_results(auto&& f, Axis tokens) {
  f(on_request(out(&Args::z_part, "z_part", {loss_length(tokens)})));
  f(on_request(out(&Args::accuracy, "accuracy", {loss_length(tokens)})));
  f(on_request(out(&Args::entropy, "entropy", {loss_length(tokens)})));
}

}  // namespace tigon
