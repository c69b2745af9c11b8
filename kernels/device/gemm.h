// SPDX-License-Identifier: Apache-2.0
// The GEMM seam: cuBLASLt on a GPU (gemm_cuda.cpp), Eigen on a CPU (gemm_host.cpp).
#pragma once
#include "kernels/signature/signature.h"

namespace tigon {

// C[m,n] = alpha op(A)[m,k] op(B)[k,n] + beta C, and bias [n] added to each row, all row-major in
// device memory. Sums are fp32; f32 inputs are multiplied as fp32, never as TF32. C is not read
// when beta is 0 and may not overlap A or B. The product may be rounded to C's type before the bias
// is added to it, as cuBLASLt does for some sizes; with beta a 16-bit C may be rounded twice.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  DType in_type = DType::kF32;        // of A and B: f32, bf16 or f16
  DType out_type = DType::kF32;       // of C: in_type or f32
  const void* a = nullptr;            // [m, k], or [k, m] when transpose_a
  const void* b = nullptr;            // [k, n], or [n, k] when transpose_b
  void* c = nullptr;                  // [m, n]
  const void* bias = nullptr;         // [n] of C's type; nullptr: none
  int64_t lda = 0, ldb = 0, ldc = 0;  // elements from one row to the next, of A and B as stored
  bool transpose_a = false, transpose_b = false;
  float alpha = 1.0f, beta = 0.0f;
};

// Bytes of scratch that gemm() needs for this problem. Depends on shapes and types only.
size_t gemm_workspace(const Gemm& problem);

// Enqueues the product. Errors: kInvalidArgument for a wrong type, size, pointer or too little
// scratch; kUnsupported when the library has no algorithm; kLaunchFailed otherwise. Allocates no
// device memory, does not synchronise and can be captured into a graph once the shape has been used
// before (the first use creates the library's handle).
Status gemm(const Gemm& problem, Scratch scratch, Stream stream);

// Times the library's best algorithms for this shape on the current device and remembers the
// fastest for later calls of gemm() whose pointers are aligned as well as these; contents are not
// touched, a null pointer counts as aligned to 256 bytes. Allocates and frees device memory and
// synchronises; a second call for the same shape does nothing. On the host: does nothing.
Status gemm_tune(const Gemm& problem);

// What both implementations check first: types, sizes and leading dimensions, not pointers.
inline Status gemm_check(const Gemm& p) {
  const bool low = p.in_type == DType::kBF16 || p.in_type == DType::kF16;
  if (!low && p.in_type != DType::kF32) return invalid("gemm: A and B must be f32, bf16 or f16");
  if (p.out_type != p.in_type && p.out_type != DType::kF32)
    return invalid("gemm: C must be f32 or of the type of A and B");
  if (p.m < 0 || p.n < 0 || p.k < 0) return invalid("gemm: m, n and k must not be negative");
  if (p.lda < (p.transpose_a ? p.m : p.k) || p.ldb < (p.transpose_b ? p.k : p.n) || p.ldc < p.n)
    return invalid("gemm: a leading dimension is smaller than its row");
  return {};
}

}  // namespace tigon
