// SPDX-License-Identifier: Apache-2.0
// The trainer's small kernels: residual add, embedding, Medusa's activation, gradient norm and
// accumulation, AdamW. Both sides of a comparison use them. Sums run in a fixed order, so results
// do not depend on timing. Pointers are 16-byte aligned device memory and row lengths multiples of
// 8, as MemoryPlan and problem_with() see to.
#pragma once
#include <cstdint>

#include "kernels/signature/signature.h"

namespace tigon::convergence {

// y[i] = a[i] + b[i] for n elements; y may be a or b.
template <class T>
Status add(const T* a, const T* b, T* y, int64_t n, Stream stream);

// y[i, :] = table[id[i], :] for `rows` rows of `hidden` elements.
template <class T>
Status gather_rows(const T* table, const int64_t* id, T* y, int64_t rows, int64_t hidden,
                   Stream stream);

// dtable[id, :] += sum over the places i of that id of dy[i, :], summed in fp32 in the order of
// Batch::order and rounded once. order and first: as in Batch.
template <class T>
struct ScatterRows {
  const T* dy;           // [rows, hidden]
  const int64_t* id;     // [rows]
  const int32_t* order;  // [rows]
  const int32_t* first;  // [rows + 1]
  T* dtable;             // [vocabulary, hidden]
  int64_t rows, hidden;
};
template <class T>
Status scatter_rows(const ScatterRows<T>& args, Stream stream);

// to[i] = from[i] rounded to T.
template <class T>
Status round_to(const float* from, T* to, int64_t n, Stream stream);

// to[j] = sum over the rows of from [rows, columns], rounded to T.
template <class T>
Status sum_rows(const float* from, int64_t rows, int64_t columns, T* to, Stream stream);

// y[i] = x[i] + silu(a[i]), and its gradient by a: da[i] = dy[i] silu'(a[i]).
template <class T>
Status add_silu(const T* x, const T* a, T* y, int64_t n, Stream stream);
template <class T>
Status silu_gradient(const T* dy, const T* a, T* da, int64_t n, Stream stream);

// sum[i] = (first ? 0 : sum[i]) + scale g[i].
template <class T>
Status accumulate(const T* g, float scale, bool first, float* sum, int64_t n, Stream stream);

// result[0] = sum of g[i]^2. `partial` has kNormPartials elements.
inline constexpr int kNormPartials = 256;
template <class T>
Status sum_of_squares(const T* g, int64_t n, float* partial, float* result, Stream stream);

// One step of AdamW (Loshchilov and Hutter 2019) on fp32 master weights, after the gradient has
// been scaled so that its global norm is at most `clip`; `weight` becomes `master` rounded.
// Elements from `decayed` on do not decay. n is a multiple of 8.
template <class T>
struct AdamW {
  T* weight;
  float *master, *m, *v;
  const T* gradient;
  int64_t n, decayed;
  const float* square_norm;  // [1]
  const float* schedule;     // [kSchedule]: what changes from step to step
  float clip, beta1, beta2, eps, weight_decay;
};
// The rate, 1 / (1 - beta1^t) and 1 / (1 - beta2^t) of step t, from 1.
inline constexpr int kSchedule = 3;
template <class T>
Status adamw(const AdamW<T>& args, Stream stream);

}  // namespace tigon::convergence
