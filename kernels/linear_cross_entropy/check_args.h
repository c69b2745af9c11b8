// SPDX-License-Identifier: Apache-2.0
// What a call must be: shapes, pointers and options.
#pragma once
#include <climits>

#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/linear_head/chunks.h"
#include "kernels/signature/checks.h"

namespace tigon::linear_cross_entropy {

using linear_head::WritesGradients;

template <class T>
bool is_matrix(const View<T, 2>& v, int64_t rows, int64_t columns) {
  return has_shape(v, rows, columns) && (rows <= 1 || v.stride[0] >= columns);
}

// What only forward_backward has.
template <class Args>
Status check_gradients(const Args& a, int64_t losses) {
  const int64_t rows = a.x.shape[0], hidden = a.x.shape[1], columns = a.w.shape[0];
  if (a.dloss && !has_shape(a.dloss, losses))
    return invalid("linear_cross_entropy: dloss must be [T] with reduction none, else [1]");
  if (a.dbias && !has_shape(a.dbias, columns))
    return invalid("linear_cross_entropy: dbias must be [V]");
  if (a.dx && !is_matrix(a.dx, rows, hidden))
    return invalid("linear_cross_entropy: dx must be shaped like x");
  if ((a.dw && !is_matrix(a.dw, columns, hidden)) ||
      (a.dw_fp32 && !is_matrix(a.dw_fp32, columns, hidden)) ||
      (a.dw_accum && !is_matrix(a.dw_accum, columns, hidden)))
    return invalid("linear_cross_entropy: dw, dw_fp32 and dw_accum must be shaped like w");
  if (static_cast<bool>(a.dw) + static_cast<bool>(a.dw_fp32) + static_cast<bool>(a.dw_accum) > 1)
    return invalid("linear_cross_entropy: at most one of dw, dw_fp32 and dw_accum");
  return {};
}

// Loss, results and the vectors over classes.
template <class Args>
Status check_loss(const Args& a, int64_t losses) {
  const int64_t columns = a.w.shape[0];
  if (!has_shape(a.loss, losses) || is_missing(a.loss))
    return invalid("linear_cross_entropy: loss must be [T] with reduction none, else [1]");
  for (const auto* result : {&a.z_part, &a.accuracy, &a.entropy})
    if (*result && !has_shape(*result, losses))
      return invalid(
          "linear_cross_entropy: z_part, accuracy and entropy must be [T] with reduction none, "
          "else [1]");
  if (a.class_weight && !has_shape(a.class_weight, columns))
    return invalid("linear_cross_entropy: class_weight must be [V]");
  if (a.bias && !has_shape(a.bias, columns))
    return invalid("linear_cross_entropy: bias must be [V]");
  if (a.normaliser && !has_shape(a.normaliser, 1))
    return invalid("linear_cross_entropy: normaliser must be [1]");
  if (!(a.label_smoothing >= 0.0f && a.label_smoothing <= 1.0f))
    return invalid("linear_cross_entropy: label_smoothing must be in [0, 1]");
  return {};
}

template <class Args>
Status check(const Args& a) {
  const int64_t rows = a.x.shape[0], hidden = a.x.shape[1], columns = a.w.shape[0];
  const int64_t losses = a.reduction == Reduction::kNone ? rows : 1;
  if (hidden > INT_MAX) return unsupported("linear_cross_entropy: H must be below 2^31");
  if (rows < 0 || hidden < 1 || columns < 1)
    return invalid("linear_cross_entropy: x must be [T >= 0, H >= 1] and w [V >= 1, H]");
  if (!is_matrix(a.x, rows, hidden) || !is_matrix(a.w, columns, hidden))
    return invalid("linear_cross_entropy: rows of x and w must be contiguous, of the same length");
  if (!has_shape(a.target, rows) || !has_shape(a.lse, rows))
    return invalid("linear_cross_entropy: target and lse must be [T]");
  if (is_missing(a.x) || is_missing(a.w) || is_missing(a.target) || is_missing(a.lse))
    return invalid("linear_cross_entropy: x, w, target and lse must not be null");
  if (const Status s = check_loss(a, losses); !s.ok()) return s;
  if constexpr (WritesGradients<Args>) return check_gradients(a, losses);
  return {};
}

}  // namespace tigon::linear_cross_entropy
