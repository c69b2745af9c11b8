// SPDX-License-Identifier: Apache-2.0
// Oracle of rope in plain Eigen, and S: the same formulas with every term replaced by its absolute
// value.
#pragma once
#include <limits>
#include <utility>

#include "kernels/rope/rope.h"
#include "reference/eigen_view.h"

namespace tigon::reference::rope {

using tigon::rope::Backward;
using tigon::rope::Forward;
using tigon::rope::Options;
using tigon::rope::Pairing;
using tigon::rope::Sections;

// Of the `half` pairs, which of a token's positions pair j has: 0 time, 1 height, 2 width.
inline int section_of(int64_t j, int64_t half, const Options& o) {
  if (o.sections == Sections::kChunked)
    return j < half - o.width - o.height ? 0 : j < half - o.width ? 1 : 2;
  if (j % 3 == 1 && j / 3 < o.height) return 1;
  if (j % 3 == 2 && j / 3 < o.width) return 2;
  return 0;
}

// Entry (t, j) of a table [S, R/2] of cosines or sines is that of pair j of token t.
template <class S>
Rows<S> angles_of(const View<const S, 2>& table, const View<const int64_t, 2>& positions,
                  int64_t tokens, const Options& o) {
  const auto rows = array(table);
  if (!positions) return rows;
  Rows<S> angles(tokens, rows.cols());
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < rows.cols(); ++j) {
      const int section = o.height + o.width > 0 ? section_of(j, rows.cols(), o) : 0;
      const int64_t row = positions.data[section * positions.stride[0] + t];
      const bool is_row = row >= 0 && row < rows.rows();
      angles(t, j) = is_row ? S(rows(row, j)) : std::numeric_limits<S>::quiet_NaN();
    }
  return angles;
}

// Columns of pair j of `half`.
inline std::pair<int64_t, int64_t> columns_of(int64_t j, int64_t half, Pairing pairing) {
  if (pairing == Pairing::kInterleaved) return {2 * j, 2 * j + 1};
  return {j, j + half};
}

// x1' = x1 cos + x2 across, x2' = x2 cos + x1 back for every pair of every head of x [T, N, D],
// into `out` where that is given.
template <class S>
void rotate(const View<S, 3>& x, const View<S, 3>& out, const Rows<S>& cos, const Rows<S>& across,
            const Rows<S>& back, Pairing pairing) {
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    const Rows<S> heads = slice(x, t);  // [N, D]
    auto rotated = slice(out ? out : x, t);
    rotated = heads;
    for (int64_t j = 0; j < cos.cols(); ++j) {
      const auto [a, b] = columns_of(j, cos.cols(), pairing);
      rotated.col(a) = heads.col(a) * cos(t, j) + heads.col(b) * across(t, j);
      rotated.col(b) = heads.col(b) * cos(t, j) + heads.col(a) * back(t, j);
    }
  }
}

template <class P>
void forward(const Forward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> cos = angles_of(a.cos, a.positions, a.q.shape[0], a),
                sin = angles_of(a.sin, a.positions, a.q.shape[0], a);
  rotate<S>(a.q, a.q_out, cos, -sin, sin, a.pairing);
  rotate<S>(a.k, a.k_out, cos, -sin, sin, a.pairing);
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> cos = angles_of(a.cos, a.positions, a.dq.shape[0], a),
                sin = angles_of(a.sin, a.positions, a.dq.shape[0], a);
  rotate<S>(a.dq, a.dq_out, cos, sin, -sin, a.pairing);
  rotate<S>(a.dk, a.dk_out, cos, sin, -sin, a.pairing);
}

// Of an input that is only read it is |x|.
template <class S>
void rotate_scale(const View<S, 3>& x, const View<S, 3>& out, const Rows<S>& cos,
                  const Rows<S>& sin, Pairing pairing) {
  for (int64_t t = 0; t < x.shape[0]; ++t) slice(x, t) = slice(x, t).abs().eval();
  rotate<S>(x, out, cos.abs(), sin.abs(), sin.abs(), pairing);
}

template <class P>
void forward_scale(const Forward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> cos = angles_of(a.cos, a.positions, a.q.shape[0], a),
                sin = angles_of(a.sin, a.positions, a.q.shape[0], a);
  rotate_scale<S>(a.q, a.q_out, cos, sin, a.pairing);
  rotate_scale<S>(a.k, a.k_out, cos, sin, a.pairing);
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> cos = angles_of(a.cos, a.positions, a.dq.shape[0], a),
                sin = angles_of(a.sin, a.positions, a.dq.shape[0], a);
  rotate_scale<S>(a.dq, a.dq_out, cos, sin, a.pairing);
  rotate_scale<S>(a.dk, a.dk_out, cos, sin, a.pairing);
}

}  // namespace tigon::reference::rope
