// SPDX-License-Identifier: Apache-2.0
// What unfused losses behind a linear layer share: whole logits, rounded to the storage type, and
// the products of their gradient.
#pragma once
#include "reference/naive/eager.h"

namespace tigon::naive {

// x w^T + bias, [T, V].
template <class Args>
Tensor logits_of(const Eager& e, const Args& a) {
  const Tensor x = as_matrix(a.x), w = as_matrix(a.w);
  const Tensor logits = e.empty(x.type, {1, x.shape[1], w.shape[1]});
  e.matmul(x, false, w, true, logits);
  return a.bias ? e.binary(Binary::kAdd, logits, as_row(a.bias)) : logits;
}

// Those logits, or their gradient, as an op takes them.
template <class Elem>
View<Elem, 2> as_view(const Tensor& logits) {
  return view(static_cast<Elem*>(logits.data), logits.shape[1], logits.shape[2]);
}

// Without a primitive that lists rows, a promise about their number cannot be checked.
template <class Args>
void refuse_row_bound(const Args& a) {
  if (a.max_valid_rows >= 0) fail(Status::kUnsupported, "naive: no primitive lists rows");
}

inline void check(const Status& status) {
  if (!status.ok()) fail(status.code, status.reason);
}

// dlogits b or dlogits^T b into `to`, in the storage type, as autograd gives it.
inline Tensor product(const Eager& e, const Tensor& dlogits, bool transpose, const Tensor& b,
                      const Tensor& to) {
  e.matmul(dlogits, transpose, b, false, to);
  return to;
}

// Such a product, then cast or added.
template <class Args>
void write_dx(const Eager& e, const Args& a, const Tensor& dlogits) {
  const Tensor w = as_matrix(a.w);
  if (a.dx) product(e, dlogits, false, w, as_matrix(a.dx));
  if (!a.dx_fp32) return;
  const Tensor dx = product(e, dlogits, false, w, e.empty(dlogits.type, as_matrix(a.x).shape));
  e.unary(Unary::kCopy, dx, as_matrix(a.dx_fp32));
}
template <class Args>
void write_dw(const Eager& e, const Args& a, const Tensor& dlogits) {
  const Tensor x = as_matrix(a.x);
  if (a.dw) product(e, dlogits, true, x, as_matrix(a.dw));
  if (!a.dw_fp32 && !a.dw_accum) return;
  const Tensor dw = product(e, dlogits, true, x, e.empty(dlogits.type, as_matrix(a.w).shape));
  if (a.dw_fp32) e.unary(Unary::kCopy, dw, as_matrix(a.dw_fp32));
  if (a.dw_accum) e.binary(Binary::kAdd, as_matrix(a.dw_accum), dw, as_matrix(a.dw_accum));
}

inline void write_dbias(const Eager& e, const Tensor& dlogits, const Tensor& dbias) {
  if (dlogits.size() == 0) return e.fill_zero(dbias);
  e.unary(Unary::kCopy, e.sum(e.cast(dlogits, DType::kF32), Over::kTokens), dbias);
}

// dx, dw and dbias.
template <class Args>
void write_gradients(const Eager& e, const Args& a, const Tensor& dlogits) {
  write_dx(e, a, dlogits);
  write_dw(e, a, dlogits);
  if (a.dbias) write_dbias(e, dlogits, as_row(a.dbias));
}

}  // namespace tigon::naive
