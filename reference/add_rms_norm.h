// SPDX-License-Identifier: Apache-2.0
// Oracle of add_rms_norm in plain Eigen, and S: that of rms_norm on the rounded sum.
#pragma once
#include "kernels/add_rms_norm/add_rms_norm.h"
#include "reference/rms_norm.h"
#include "reference/rounding.h"

namespace tigon::reference::add_rms_norm {

using tigon::add_rms_norm::Backward;
using tigon::add_rms_norm::Forward;

// `element`: what the sum is rounded to.
template <class P>
void forward(const Forward<P>& a, DType element = DType::kF64) {
  using S = typename P::Elem;
  array(a.h) = (array(a.x) + array(a.residual)).unaryExpr([=](const S& sum) {
    return rounded(sum, element);
  });
  rms_norm::forward(norm_of(a));
}

template <class P>
void forward_scale(const Forward<P>& a, DType element) {
  forward(a, element);
  rms_norm::forward_scale(norm_of(a));
  array(a.h) = array(a.h).abs();
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> dh = a.dh ? Rows<S>(array(a.dh)) : Rows<S>::Zero(a.h.shape[0], a.h.shape[1]);
  rms_norm::backward(norm_of(a));  // dx may be dh's memory
  array(a.dx) += dh;
}

template <class P>
void backward_scale(const Backward<P>& a) {
  rms_norm::backward_scale(norm_of(a));
  if (a.dh) array(a.dx) += array(a.dh).abs();
}

}  // namespace tigon::reference::add_rms_norm
