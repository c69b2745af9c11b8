// SPDX-License-Identifier: Apache-2.0
// The GEMMs of a chunk: logits, dx and dw.
#pragma once
#include "kernels/device/gemm.h"
#include "kernels/linear_head/chunks.h"

namespace tigon::linear_head {

// The row of a matrix; nullptr where there is no memory, as when only sizes are asked for.
template <class T>
T* row_of(const View<T, 2>& v, int64_t row) {
  return v ? v.data + row * v.stride[0] : nullptr;
}

template <class T>
Gemm logits_gemm(const Head<T>& a, Chunk<T> c) {
  constexpr DType kType = dtype_of<T>;
  return {.m = c.rows,
          .n = c.columns,
          .k = a.x.shape[1],
          .in_type = kType,
          .out_type = kType,
          .a = row_of(a.x, c.row),
          .b = row_of(a.w, c.column),
          .c = c.logits,
          .bias = a.bias ? a.bias.data + c.column : nullptr,
          .lda = a.x.stride[0],
          .ldb = a.w.stride[0],
          .ldc = c.stride,
          .transpose_b = true};
}

// Where a product goes.
struct Target {
  DType type;
  void* data;
  int64_t stride;
};

template <class T>
Target target_of(const View<T, 2>& v, int64_t row) {
  return {dtype_of<T>, row_of(v, row), v.stride[0]};
}

// A product of dlogits, which lie where the chunk's logits were: to (+)= dlogits b, or dlogits^T b.
template <class T>
Gemm gradient_gemm(const Head<T>& a, Chunk<T> c, bool transpose, const T* b, int64_t ldb,
                   const Target& to, bool adds) {
  return {.m = transpose ? c.columns : c.rows,
          .n = a.x.shape[1],
          .k = transpose ? c.rows : c.columns,
          .in_type = dtype_of<T>,
          .out_type = to.type,
          .a = c.logits,
          .b = b,
          .c = to.data,
          .lda = c.stride,
          .ldb = ldb,
          .ldc = to.stride,
          .transpose_a = transpose,
          .beta = adds ? 1.0f : 0.0f};
}

template <class T>
Target dx_target(const Head<T>& a, const Plan<T>& p, int64_t row) {
  if (a.dx_fp32) return target_of(a.dx_fp32, row);
  if (p.sums_dx) return {DType::kF32, p.dx_sum, a.x.shape[1]};
  return target_of(a.dx, row);
}

template <class T>
Gemm dx_gemm(const Head<T>& a, const Plan<T>& p, Chunk<T> c) {
  // The last columns come first.
  const bool adds = c.column + c.columns != a.w.shape[0];
  return gradient_gemm(a, c, false, row_of(a.w, c.column), a.w.stride[0], dx_target(a, p, c.row),
                       adds);
}

template <class T>
Target dw_target(const Head<T>& a, const Plan<T>& p, int64_t row) {
  if (a.dw_accum) return target_of(a.dw_accum, row);
  if (a.dw_fp32) return target_of(a.dw_fp32, row);
  if (p.sums_dw) return {DType::kF32, p.dw_sum, a.x.shape[1]};
  return target_of(a.dw, row);
}

template <class T>
Gemm dw_gemm(const Head<T>& a, const Plan<T>& p, Chunk<T> c) {
  const bool adds = a.dw_accum || c.row != 0;
  return gradient_gemm(a, c, true, row_of(a.x, c.row), a.x.stride[0], dw_target(a, p, c.column),
                       adds);
}

// Calls f(gemm) for the gradients' GEMMs of a chunk until one fails. The row sweep comes before.
template <class T, class F>
Status for_gradient_gemms(const Head<T>& a, const Plan<T>& p, Chunk<T> c, F f) {
  if (a.has_dx()) {
    if (const Status s = f(dx_gemm(a, p, c)); !s.ok()) return s;
  }
  return a.has_dw() ? f(dw_gemm(a, p, c)) : Status{};
}

}  // namespace tigon::linear_head
