// SPDX-License-Identifier: Apache-2.0
// The tensors that swiglu and geglu read and write, whatever their layout, for the oracles.
#pragma once
#include "kernels/gated/options.h"
#include "reference/eigen_view.h"

namespace tigon::reference {

// Calls f(gate, up) for maps [T, F] of a and b, or of da and db.
template <class T, class F>
auto with_halves(const View<T, 2>& a, const View<T, 2>& b, GateLayout layout, F f) {
  auto rows = array(a);
  if (layout == GateLayout::kSeparate) {
    auto other = array(b);
    return f(rows, other);
  }
  const Eigen::Index columns = rows.cols() / 2;
  auto left = rows.leftCols(columns), right = rows.rightCols(columns);
  return layout == GateLayout::kGateFirst ? f(left, right) : f(right, left);
}

// Copies of gate and up.
template <class S>
struct Halves {
  Rows<S> gate, up;
};
template <class S>
Halves<S> halves(const View<const S, 2>& a, const View<const S, 2>& b, GateLayout layout) {
  return with_halves(a, b, layout, [](const auto& gate, const auto& up) {
    return Halves<S>{gate, up};
  });
}

}  // namespace tigon::reference
