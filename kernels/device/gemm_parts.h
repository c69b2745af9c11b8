// SPDX-License-Identifier: Apache-2.0
// A product whose rows of C are no whole vectors of 16 bytes, as two: cuBLASLt's fast kernels write
// only such rows, and the others take several times as long.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/device/gemm.h"

namespace tigon {

constexpr int64_t kVectorBytes = 16;
// m n k from which on the second launch costs less than a slow kernel.
constexpr double kCutFrom = 0x1p30;

// Elements of A and B in a vector.
inline int64_t vector_of(const Gemm& p) {
  return kVectorBytes / static_cast<int64_t>(size_of(p.in_type));
}

// The largest power of two up to 256 that divides the address.
inline uint32_t alignment_of(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

// The address `elements` further; where there is none, one that is aligned as it would be.
inline const void* further(const void* p, DType type, int64_t elements) {
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) +
                                       static_cast<size_t>(elements) * size_of(type));
}

// `count` columns of C from `first` on.
inline Gemm columns(Gemm p, int64_t first, int64_t count) {
  p.n = count;
  p.b = further(p.b, p.in_type, p.transpose_b ? first * p.ldb : first);
  p.c = const_cast<void*>(further(p.c, p.out_type, first));
  if (p.bias != nullptr) p.bias = further(p.bias, p.out_type, first);
  return p;
}

inline bool begins_with_vectors(const Gemm& p) {
  const int64_t v = vector_of(p);
  return p.lda % v == 0 && p.ldb % v == 0 && p.ldc % v == 0 &&
         std::min({alignment_of(p.a), alignment_of(p.b), alignment_of(p.c)}) >= kVectorBytes;
}

// The columns of the first product: all, or as many as are whole vectors. f32 has no kernel that
// would gain.
inline int64_t first_columns(const Gemm& p) {
  const int64_t whole = p.n - p.n % vector_of(p);
  const double products =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const bool cuts = p.in_type != DType::kF32 && products >= kCutFrom && begins_with_vectors(p);
  return cuts && whole != 0 ? whole : p.n;
}

// Calls f(product) for each of the products until one fails.
template <class F>
Status for_parts(const Gemm& p, F f) {
  const int64_t first = first_columns(p);
  if (const Status s = f(columns(p, 0, first)); !s.ok() || first == p.n) return s;
  return f(columns(p, first, p.n - first));
}

}  // namespace tigon
