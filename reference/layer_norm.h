// SPDX-License-Identifier: Apache-2.0
// Oracle of layer_norm in plain Eigen, and S: the same formulas with every term replaced by its
// absolute value, x - mean by |x| + S of the mean.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/layer_norm/layer_norm.h"
#include "reference/eigen_view.h"

namespace tigon::reference::layer_norm {

using tigon::layer_norm::Backward;
using tigon::layer_norm::Forward;

// v [H], or the value that stands for a tensor that is left out.
template <class S>
Row<S> given_or(const View<const S, 1>& v, double otherwise, int64_t h) {
  if (!v) return Row<S>::Constant(h, S(otherwise));
  return array(v);
}

template <class P>
void forward(const Forward<P>& a) {
  using std::sqrt;
  using S = typename P::Elem;
  const auto x = array(a.x);  // [T, H]
  auto y = array(a.y);
  const Row<S> w = given_or(a.w, 1, x.cols()), b = given_or(a.b, 0, x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const S mean = x.row(t).mean();
    const Row<S> centred = x.row(t) - mean;
    const S rstd = S(1) / sqrt(S(centred.square().mean() + S(a.eps)));
    a.mean.data[t] = mean;
    a.rstd.data[t] = rstd;
    y.row(t) = centred * rstd * w + b;
  }
}

// Of a mean that is summed about a centre, as one that sees large means must be: where few elements
// have all of the spread, as in a row with one element, the centre is off by a part of it, and so
// large are the sums. An eighth of it is less than mean |x| in a normal row, whose scale that is.
template <class S>
S mean_scale(const Row<S>& x) {
  using std::max;
  using std::sqrt;
  return max(S(x.abs().mean()), S(sqrt((x - x.mean()).square().mean()) / S(8)));
}

template <class P>
void forward_scale(const Forward<P>& a) {
  forward(a);  // rstd: a sum of squares has no cancellation
  using S = typename P::Elem;
  const auto x = array(a.x);
  const Row<S> w = given_or(a.w, 1, x.cols()), b = given_or(a.b, 0, x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const S mean = mean_scale<S>(x.row(t));
    a.mean.data[t] = mean;
    array(a.y).row(t) = (x.row(t).abs() + mean) * a.rstd.data[t] * w.abs() + b.abs();
  }
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  const auto dy = array(a.dy), x = array(a.x);  // [T, H]
  const Row<S> w = given_or(a.w, 1, x.cols());
  Row<S> dw = Row<S>::Zero(x.cols()), db = dw;
  for (int64_t t = 0; t < x.rows(); ++t) {
    const S rstd = a.rstd.data[t];
    const Row<S> x_hat = (x.row(t) - a.mean.data[t]) * rstd, m = dy.row(t) * w;
    dw += dy.row(t) * x_hat;  // before dx, which may be dy's memory
    db += dy.row(t);
    array(a.dx).row(t) = rstd * (m - m.mean() - x_hat * (m * x_hat).mean());
  }
  if (a.dw) array(a.dw) = dw;
  if (a.db) array(a.db) = db;
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using std::abs;
  using S = typename P::Elem;
  const auto dy = array(a.dy), x = array(a.x);
  const Row<S> w = given_or(a.w, 1, x.cols()).abs();
  Row<S> dw = Row<S>::Zero(x.cols()), db = dw;
  for (int64_t t = 0; t < x.rows(); ++t) {
    const S rstd = a.rstd.data[t];
    const Row<S> x_hat = (x.row(t).abs() + abs(a.mean.data[t])) * rstd;
    const Row<S> m = dy.row(t).abs() * w;
    dw += dy.row(t).abs() * x_hat;
    db += dy.row(t).abs();
    array(a.dx).row(t) = rstd * (m + m.mean() + x_hat * (m * x_hat).mean());
  }
  if (a.dw) array(a.dw) = dw;
  if (a.db) array(a.db) = db;
}

}  // namespace tigon::reference::layer_norm
