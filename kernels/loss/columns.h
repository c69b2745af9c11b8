// Cross entropy of rows of logits that come in parts of some columns: add every part, finish, then
// take the gradient of each, whose logits must be there again.
#pragma once
#include "kernels/loss/forms.h"
#include "kernels/loss/rows.h"

namespace tigon {

// What is known of a row after some parts.
struct LossState {
  Statistics<LossForm::kGeneral> statistics;
  float target;  // its logit
};

// In LossRows, logits are those of the part and all else belongs to whole rows. Several parts of
// the same rows share state [T]; `is_first` clears it.
template <class Elem>
Status add_loss_columns(const LossRows<Elem>& part, LossState* state, bool is_first, Stream stream);

// Enqueues loss, lse and results of all rows; logits are not looked at.
template <class Elem>
Status finish_loss(const LossRows<Elem>& rows, const LossState* state, Stream stream);

// Enqueues the gradient over the logits of the part, from lse.
template <class Elem>
Status loss_columns_gradient(const LossRows<Elem>& part, Stream stream);

}  // namespace tigon
