// SPDX-License-Identifier: Apache-2.0
// The tensors that the chains of swiglu and geglu read and write, whatever their layout.
#pragma once
#include "kernels/gated/options.h"
#include "reference/naive/eager.h"

namespace tigon::naive {

struct Halves {
  Tensor gate, up;
};
template <class T>
Halves halves(const View<T, 2>& a, const View<T, 2>& b, GateLayout layout) {
  const Tensor rows = as_matrix(a);
  if (layout == GateLayout::kSeparate) return {rows, as_matrix(b)};
  const int64_t columns = rows.shape[2] / 2;
  const Tensor left = rows.slice(2, 0, columns), right = rows.slice(2, columns, columns);
  if (layout == GateLayout::kGateFirst) return {left, right};
  return {right, left};
}

// x times a multiplier, in fp32; x itself for 1, as in a framework.
inline Tensor multiplied(const Eager& e, const Tensor& x, float multiplier) {
  return multiplier == 1.0f ? x : e.binary(Binary::kMul, e.cast(x, DType::kF32), multiplier);
}

}  // namespace tigon::naive
