// SPDX-License-Identifier: Apache-2.0
// Oracle of rms_norm in plain Eigen, and S: the same formulas with every term replaced by its
// absolute value.
#pragma once
#include <cmath>

#include "kernels/rms_norm/rms_norm.h"
#include "reference/eigen_view.h"

namespace tigon::reference::rms_norm {

using tigon::rms_norm::Backward;
using tigon::rms_norm::Forward;

// offset + w [H], or ones without a weight.
template <class S>
Row<S> gain(const View<const S, 1>& w, double offset, int64_t h) {
  if (!w) return Row<S>::Constant(h, S(1));
  return array(w) + S(offset);
}

template <class P>
void forward(const Forward<P>& a) {
  using std::sqrt;
  using S = typename P::Elem;
  const auto x = array(a.x);  // [T, H]
  auto y = array(a.y);
  const Row<S> g = gain(a.w, a.offset, x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const S rstd = S(1) / sqrt(S(x.row(t).square().mean() + S(a.eps)));
    a.rstd.data[t] = rstd;
    y.row(t) = x.row(t) * rstd * g;
  }
}

template <class P>
void forward_scale(const Forward<P>& a) {
  forward(a);  // a sum of squares has no cancellation
  array(a.y) = array(a.y).abs();
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  const auto dy = array(a.dy), x = array(a.x);  // [T, H]
  const Row<S> g = gain(a.w, a.offset, x.cols());
  Row<S> dw = Row<S>::Zero(x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const S rstd = a.rstd.data[t];
    const Row<S> x_hat = x.row(t) * rstd, m = dy.row(t) * g;
    dw += dy.row(t) * x_hat;  // before dx, which may be dy's memory
    array(a.dx).row(t) = rstd * (m - x_hat * (m * x_hat).mean());
  }
  if (a.dw) array(a.dw) = dw;
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  const auto dy = array(a.dy), x = array(a.x);
  const Row<S> g = gain(a.w, a.offset, x.cols()).abs();
  Row<S> dw = Row<S>::Zero(x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const S rstd = a.rstd.data[t];
    const Row<S> x_hat = x.row(t).abs() * rstd, m = dy.row(t).abs() * g;
    dw += dy.row(t).abs() * x_hat;
    array(a.dx).row(t) = rstd * (m + x_hat * (m * x_hat).mean());
  }
  if (a.dw) array(a.dw) = dw;
}

}  // namespace tigon::reference::rms_norm
