// Options that cross_entropy and linear_cross_entropy share.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon {

enum class Reduction : int { kMean, kSum, kNone };

// With x the row's logits, y its target, p = softmax(x), lse = log sum exp(x), a = label_smoothing:
//   x <- softcap * tanh(x / softcap)                          when softcap > 0, before everything
//   else loss = (1 - a) (lse - x_y) + a (lse - mean(x)) + z_loss * lse^2 dloss/dx_i = (1 + 2 z_loss
//   lse) p_i - a / V - (1 - a) [i = y], times the softcap's derivative
// mean divides by the number of rows that are not ignored; when all are ignored, loss and gradient
// are 0. An ignored row gives loss 0 and gradient 0 and its logits do not matter. A target that is
// neither ignore_index nor in [0, V) is never used as an index: its row's loss and gradient are
// NaN.
struct LossOptions {
  int64_t ignore_index = -100;
  float label_smoothing = 0.0f;
  float z_loss = 0.0f;
  float softcap = 0.0f;
  Reduction reduction = Reduction::kMean;
};

inline auto loss_options() {
  return std::tuple{option(&LossOptions::ignore_index, "ignore_index"),
                    option(&LossOptions::label_smoothing, "label_smoothing"),
                    option(&LossOptions::z_loss, "z_loss"),
                    option(&LossOptions::softcap, "softcap"),
                    option(&LossOptions::reduction, "reduction", {"mean", "sum", "none"})};
}

// Length of the loss and of its upstream gradient: one per token with reduction none, else one.
inline Expr loss_length(Axis tokens) {
  const std::string t = tokens.symbol;
  return {"L", [t](const Binding& b) {
            return b.at("reduction") == static_cast<double>(Reduction::kNone) ? b.at(t) : 1.0;
          }};
}

}  // namespace tigon
