// SPDX-License-Identifier: Apache-2.0
// Products of matrices that are given as arrays.
#pragma once
#include "reference/eigen_view.h"

namespace tigon::reference {

// a b^T
template <class S>
Rows<S> times_transpose(const Rows<S>& a, const Rows<S>& b) {
  return (a.matrix() * b.matrix().transpose()).array();
}

// a b
template <class S>
Rows<S> times(const Rows<S>& a, const Rows<S>& b) {
  return (a.matrix() * b.matrix()).array();
}

// a^T b
template <class S>
Rows<S> transpose_times(const Rows<S>& a, const Rows<S>& b) {
  return (a.matrix().transpose() * b.matrix()).array();
}

// The rows of a, each times a factor of its own.
template <class S>
Rows<S> scaled_rows(const Rows<S>& a, const Row<S>& factors) {
  return a.colwise() * factors.transpose();
}

// Compiled once, in linear_head.cpp.
extern template Rows<double> times_transpose(const Rows<double>&, const Rows<double>&);
extern template Rows<double> times(const Rows<double>&, const Rows<double>&);
extern template Rows<double> transpose_times(const Rows<double>&, const Rows<double>&);
extern template Rows<double> scaled_rows(const Rows<double>&, const Row<double>&);

}  // namespace tigon::reference
