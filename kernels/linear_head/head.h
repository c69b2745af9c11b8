// SPDX-License-Identifier: Apache-2.0
// A linear layer in front of a loss, and where its gradients go.
#pragma once
#include <climits>

#include "kernels/linear_head/options.h"
#include "kernels/signature/checks.h"

namespace tigon::linear_head {

// logits = x w^T + bias, dx = dlogits w, dw = dlogits^T x, dbias = sum of dlogits over rows.
template <class T>
struct Head : ChunkOptions {
  View<const T, 2> x, w;            // [T, H], [V, H]
  View<const T, 1> bias;            // [V]; left out: none
  View<T, 2> dx, dw;                // left out: not computed
  View<float, 2> dx_fp32, dw_fp32;  // get dx and dw unrounded
  View<float, 2> dw_accum;          // dw is added to it
  View<float, 1> dbias;             // left out: not computed
  // The gradient of a logit follows from what the caller gives. False: from statistics of its whole
  // row, which come first.
  bool knows_rows = false;

  // At most one of each is given.
  bool has_dx() const { return dx || dx_fp32; }
  bool has_dw() const { return dw || dw_fp32 || dw_accum; }
  bool has_gradients() const { return has_dx() || has_dw() || dbias; }
};

template <class Args>
concept WritesGradients = requires(const Args& a) {
  a.dw.data;
};

// A single row may have any stride; products want none below its length.
template <class T>
View<T, 2> with_usual_stride(View<T, 2> v) {
  if (v.shape[0] <= 1) v.stride[0] = v.shape[1];
  return v;
}

// The head of a call that has members of these names.
template <class Args>
Head<typename Args::Elem> head_of(const Args& a) {
  Head<typename Args::Elem> head;
  static_cast<ChunkOptions&>(head) = a;
  head.x = with_usual_stride(a.x);
  head.w = with_usual_stride(a.w);
  head.bias = a.bias;
  if constexpr (WritesGradients<Args>) {
    head.dx = with_usual_stride(a.dx);
    head.dx_fp32 = with_usual_stride(a.dx_fp32);
    head.dw = with_usual_stride(a.dw);
    head.dw_fp32 = with_usual_stride(a.dw_fp32);
    head.dw_accum = with_usual_stride(a.dw_accum);
    head.dbias = a.dbias;
  }
  return head;
}

template <class T>
bool is_matrix(const View<T, 2>& v, int64_t rows, int64_t columns) {
  return has_shape(v, rows, columns) && (rows <= 1 || v.stride[0] >= columns);
}

template <class T>
Status check_gradients(const Head<T>& a) {
  const int64_t rows = a.x.shape[0], hidden = a.x.shape[1], columns = a.w.shape[0];
  if (a.dbias && !has_shape(a.dbias, columns)) return invalid("linear head: dbias must be [V]");
  if ((a.dx && !is_matrix(a.dx, rows, hidden)) ||
      (a.dx_fp32 && !is_matrix(a.dx_fp32, rows, hidden)))
    return invalid("linear head: dx and dx_fp32 must be shaped like x");
  if (a.dx && a.dx_fp32) return invalid("linear head: at most one of dx and dx_fp32");
  if ((a.dw && !is_matrix(a.dw, columns, hidden)) ||
      (a.dw_fp32 && !is_matrix(a.dw_fp32, columns, hidden)) ||
      (a.dw_accum && !is_matrix(a.dw_accum, columns, hidden)))
    return invalid("linear head: dw, dw_fp32 and dw_accum must be shaped like w");
  if (static_cast<bool>(a.dw) + static_cast<bool>(a.dw_fp32) + static_cast<bool>(a.dw_accum) > 1)
    return invalid("linear head: at most one of dw, dw_fp32 and dw_accum");
  return {};
}

// What a call must be: shapes and pointers.
template <class T>
Status check(const Head<T>& a) {
  const int64_t rows = a.x.shape[0], hidden = a.x.shape[1], columns = a.w.shape[0];
  if (hidden > INT_MAX) return unsupported("linear head: H must be below 2^31");
  if (columns > INT_MAX) return unsupported("linear head: the vocabulary must be below 2^31");
  if (rows < 0 || hidden < 1 || columns < 1)
    return invalid("linear head: x must be [T >= 0, H >= 1] and w [V >= 1, H]");
  if (!is_matrix(a.x, rows, hidden) || !is_matrix(a.w, columns, hidden))
    return invalid("linear head: rows of x and w must be contiguous, of the same length");
  if (is_missing(a.x) || is_missing(a.w)) return invalid("linear head: x and w must not be null");
  if (a.bias && !has_shape(a.bias, columns)) return invalid("linear head: bias must be [V]");
  return check_gradients(a);
}

}  // namespace tigon::linear_head
