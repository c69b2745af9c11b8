// SPDX-License-Identifier: Apache-2.0
// Oracle of softmax in plain Eigen, and S: the same formulas with every term replaced by its
// absolute value.
#pragma once
#include <cmath>

#include "kernels/softmax/softmax.h"
#include "reference/eigen_view.h"
#include "reference/row_sums.h"

namespace tigon::reference::softmax {

using tigon::softmax::Backward;
using tigon::softmax::Forward;

// Not Eigen's maximum, which may pass over a NaN or not; one of them makes the row NaN either way.
template <class S>
S largest(const Row<S>& x) {
  S m = x[0];
  for (const S& v : x)
    if (v > m) m = v;
  return m;
}

// As torch.softmax: a row with a NaN or +inf, or with nothing but -inf, is NaN.
template <class P>
void forward(const Forward<P>& a) {
  using S = typename P::Elem;
  for (int64_t t = 0; t < a.x.shape[0]; ++t) {
    const Row<S> x = array(a.x).row(t);
    const Row<S> e = (x - largest(x)).exp();
    array(a.y).row(t) = e / e.sum();
  }
}

// y is off by the rounding of its exponent x - max, and by those of the product with log2 e and of
// this constant (u/4) that the instruction for 2^x needs, beside those of a sum over V and of an
// elementary function: with n = row_sum_terms(V) and c0 = 16 the budget (4 sqrt(n) + c0) u S is
// then (4 sqrt(n) + 16 + 2.25 |x - max|) u y. Where exp underflows in fp32, y is off by up to
// 2^-126.
template <class P>
void forward_scale(const Forward<P>& a) {
  using S = typename P::Elem;
  constexpr double kElementary = 16, kExponent = 2.25, kUnderflow = 0x1p-106;
  forward(a);
  for (int64_t t = 0; t < a.x.shape[0]; ++t) {
    const Row<S> x = array(a.x).row(t);
    const S expected = S(4 * std::sqrt(row_sum_terms(x.size())) + kElementary);
    const Row<S> below = x.isInf().select(Row<S>::Zero(x.size()), largest(x) - x);
    array(a.y).row(t) =
        array(a.y).row(t) * (S(1) + S(kExponent) * below / expected) + S(kUnderflow);
  }
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  for (int64_t t = 0; t < a.y.shape[0]; ++t) {
    const Row<S> y = array(a.y).row(t), dy = array(a.dy).row(t);
    array(a.dx).row(t) = y * (dy - (y * dy).sum());
  }
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  for (int64_t t = 0; t < a.y.shape[0]; ++t) {
    const Row<S> y = array(a.y).row(t).abs(), dy = array(a.dy).row(t).abs();
    array(a.dx).row(t) = y * (dy + (y * dy).sum());
  }
}

}  // namespace tigon::reference::softmax
