// SPDX-License-Identifier: Apache-2.0
// Cross entropy of rows of logits that come in parts, some columns at a time. Add every part and
// finish; then take the gradient of every part, whose logits must be in memory again.
#pragma once
#include "kernels/loss/forms.h"
#include "kernels/loss/rows.h"

namespace tigon {

// A row's statistics after some parts.
struct LossState {
  Statistics<LossForm::kGeneral> statistics;
  float target;  // its logit
};

// part.logits covers the columns of this part; every other field covers whole rows. All parts of
// the same rows share state [T], which `is_first` clears.
template <class Elem>
Status add_loss_columns(const LossRows<Elem>& part, LossState* state, bool is_first, Stream stream);

// Enqueues loss, lse and results of all rows; does not read logits.
template <class Elem>
Status finish_loss(const LossRows<Elem>& rows, const LossState* state, Stream stream);

// Enqueues the part's gradient, which lse determines, over its logits.
template <class Elem>
Status loss_columns_gradient(const LossRows<Elem>& part, Stream stream);

}  // namespace tigon
