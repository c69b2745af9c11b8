// SPDX-License-Identifier: Apache-2.0
// Views as Eigen arrays, for the oracles.
#pragma once
#include <Eigen/Core>
#include <algorithm>
#include <type_traits>

#include "kernels/signature/signature.h"

namespace tigon::reference {

template <class S>
using Row = Eigen::Array<S, 1, Eigen::Dynamic>;
template <class S>
using Rows = Eigen::Array<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Array, class T>
using MapOf = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Array, Array>,
                         Eigen::Unaligned, Eigen::OuterStride<>>;

// A vector as one row [N].
template <class T>
MapOf<Row<std::remove_const_t<T>>, T> array(const View<T, 1>& v) {
  return {v.data, 1, v.shape[0], Eigen::OuterStride<>(v.shape[0])};
}

// A matrix [N, M]; its rows may be strided.
template <class T>
MapOf<Rows<std::remove_const_t<T>>, T> array(const View<T, 2>& v) {
  return {v.data, v.shape[0], v.shape[1], Eigen::OuterStride<>(v.stride[0])};
}

// Slice t of a tensor [T, N, M] as a matrix [N, M].
template <class T>
MapOf<Rows<std::remove_const_t<T>>, T> slice(const View<T, 3>& v, int64_t t) {
  return {v.data + t * v.stride[0], v.shape[1], v.shape[2], Eigen::OuterStride<>(v.stride[1])};
}

// The same tensor, not to be written.
template <class T, int N>
View<const T, N> as_const(const View<T, N>& v) {
  View<const T, N> c;
  c.data = v.data;
  std::copy_n(v.shape, N, c.shape);
  std::copy_n(v.stride, N, c.stride);
  return c;
}

}  // namespace tigon::reference
