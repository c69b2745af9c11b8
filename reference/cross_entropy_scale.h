// SPDX-License-Identifier: Apache-2.0
// S of cross_entropy: what the roundings of the formulas of cross_entropy.h are measured by.
#pragma once
#include <cmath>

#include "reference/cross_entropy.h"
#include "reference/row_sums.h"

namespace tigon::reference::cross_entropy {

// |x|, with 0 for a logit of -inf, which takes no part in any sum.
template <class S>
Row<S> finite_abs(const Row<S>& x) {
  return x.isInf().select(Row<S>::Zero(x.size()), x.abs());
}

// A budget multiplies S by (4 sqrt(n) + c0) u, n at least row_sum_terms(V) and c0 at least 16. What
// is rounded a few times, but is no sum over V, is allowed 2 u of its magnitude instead.
template <class S>
S few_roundings(const S& magnitude, int64_t columns) {
  return S(2) * magnitude / S(4 * std::sqrt(row_sum_terms(columns)) + 16);
}

// The same for a sum over rows, and the sum of weights that divides it: 8 sqrt(T) u of the results
// of rows.
template <class S, class Args>
S rows_share(const Args& a, int64_t columns) {
  if (a.reduction == Reduction::kNone) return S(0);
  const auto rows = double(a.target.shape[0]);
  return S(2 * std::sqrt(rows / (rows + row_sum_terms(columns))));
}

// 1: what the sum of exponentials is off by, relative to itself, its logarithm is off by. Beside it
// the roundings of m, of exponents and of the result.
template <class S>
S lse_scale(const Row<S>& x, const S& lse) {
  using std::abs;
  return S(1) + few_roundings<S>(abs(largest(x)) + abs(lse), x.size());
}

// The same factor of absolute values.
template <class S>
S probability_factor_scale(const S& lse, int64_t y, const LossOptions& o, const Weighting<S>& w) {
  using std::abs;
  const double smoothing = o.label_smoothing;
  return S(1 - smoothing) * abs(w.of_class(y)) + S(smoothing) * w.of.abs().mean() +
         S(2) * abs(w.z_loss) * lse;
}

template <class S>
S row_loss_scale(const Row<S>& x, const S& lse, int64_t y, const LossOptions& o,
                 const Weighting<S>& w) {
  using std::abs;
  const S factor = probability_factor_scale(S(abs(lse)), y, o, w);
  S scale = lse_scale(x, lse) * factor, rounded = factor * abs(lse);
  if (is_class(y, x.size())) rounded += abs(w.of[y] * x[y]);
  if (o.label_smoothing != 0) scale += S(o.label_smoothing) * (w.of * x).abs().mean();
  return scale + few_roundings(rounded, x.size());
}

template <class S>
S z_part_scale(const S& lse, const S& lse_scale, const LossOptions& o, int64_t columns) {
  using std::abs;
  return S(std::abs(o.z_loss)) * abs(lse) *
         (S(2) * lse_scale + few_roundings<S>(abs(lse), columns));
}

// log sum exp(x - m) - sum p (x - m): two sums over V, and p is off by its exponent's roundings,
// those of x in a softcap among them.
template <class S>
S row_entropy_scale(const Row<S>& x, const S& lse) {
  using std::abs;
  const S m = largest(x);
  const Row<S> p = probabilities(x, lse);
  S scale(1), rounded = abs(lse - m);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (p[i] == S(0)) continue;
    const S below = abs(x[i] - m);
    scale += p[i] * below;
    rounded += p[i] * (below * below + (abs(x[i]) + abs(m)) * (S(1) + below + abs(lse - m)));
  }
  return S(2) * scale + few_roundings(rounded, x.size());
}

// p is off by the roundings of its exponent x - lse, one each of x, m and lse, beside those of a
// sum over V and of an elementary function. With n = row_sum_terms(V) and c0 = 24 the budget
// (4 sqrt(n) + c0) u S is then (4 sqrt(n) + 24 + |x| + |m| + |lse|) u p. Where exp underflows in
// fp32, p is off by up to 2^-126.
template <class S>
Row<S> probability_scale(const Row<S>& x, const S& lse) {
  using std::abs;
  constexpr double kElementary = 24, kUnderflow = 0x1p-106;
  const S expected = S(4 * std::sqrt(row_sum_terms(x.size())) + kElementary);
  const Row<S> exponent = finite_abs(x) + abs(largest(x)) + abs(lse);
  return probabilities(x, lse) * (S(1) + exponent / expected) + S(kUnderflow);
}

// (p + q + 2 z |lse| p) |softcap'|; the softcap's derivative is 1 - tanh^2, so its scale 1 +
// tanh^2.
template <class S>
Row<S> row_gradient_scale(const Row<S>& logits, const S& lse, int64_t y, const LossOptions& o,
                          const Weighting<S>& w) {
  using std::abs;
  const double smoothing = o.label_smoothing;
  const Row<S> x = softcapped(logits, o.softcap);
  Row<S> g = probability_scale(x, lse) * probability_factor_scale(S(abs(lse) + S(1)), y, o, w);
  g += S(smoothing / double(x.size())) * w.of.abs();
  if (is_class(y, x.size())) g[y] += S(1 - smoothing) * abs(w.of[y]);
  return g * (S(2) - softcap_slope(logits, o.softcap));
}

template <class P>
void forward_scale(const Forward<P>& a) {
  using S = typename P::Elem;
  using std::abs;
  const int64_t columns = a.logits.shape[1];
  const Weighting<S> w = weighting(a, columns);
  const S share = rows_share<S>(a, columns);
  RowResults<S> rows(a.target.shape[0]);
  array(a.lse).setZero();
  for (int64_t t = 0; t < rows.loss.size(); ++t) {
    const int64_t y = a.target.data[t];
    if (y == a.ignore_index) continue;
    const Row<S> logits = array(a.logits).row(t), x = softcapped<S>(logits, a.softcap);
    const S lse = log_sum_exp(x);
    a.lse.data[t] = lse_scale(x, lse);
    rows.loss[t] = row_loss_scale(x, lse, y, a, w) + share * abs(row_loss(x, lse, y, a, w));
    rows.z_part[t] =
        z_part_scale(lse, a.lse.data[t], a, columns) + share * abs(S(a.z_loss) * lse * lse);
    rows.accuracy[t] = row_accuracy(logits, y);
    if (a.entropy) rows.entropy[t] = row_entropy_scale(x, lse) + share * abs(row_entropy(x, lse));
  }
  write_results(a, rows, w);
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  const Weighting<S> w = weighting(a, a.logits.shape[1]);
  const Row<S> g = upstream(a, w).abs();
  for (int64_t t = 0; t < g.size(); ++t) {
    auto row = array(a.logits).row(t);
    if (a.target.data[t] == a.ignore_index)
      row.setZero();
    else
      row = g[t] * row_gradient_scale<S>(row, a.lse.data[t], a.target.data[t], a, w);
  }
}

template <class P>
void forward_backward_scale(const ForwardBackward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> logits = array(a.logits);
  forward(forward_part(a));  // the gradient's S needs lse, not the S of lse
  backward_scale(backward_part(a));
  Forward<P> f = forward_part(a);
  f.logits = view(logits.data(), logits.rows(), logits.cols());
  forward_scale(f);
}

// Compiled once, in cross_entropy.cpp.
extern template Row<double> finite_abs(const Row<double>&);
extern template double lse_scale(const Row<double>&, const double&);
extern template double row_loss_scale(const Row<double>&, const double&, int64_t,
                                      const LossOptions&, const Weighting<double>&);
extern template double row_entropy_scale(const Row<double>&, const double&);
extern template Row<double> probability_scale(const Row<double>&, const double&);
extern template Row<double> row_gradient_scale(const Row<double>&, const double&, int64_t,
                                               const LossOptions&, const Weighting<double>&);
extern template void forward_scale(const Forward<F64>&);
extern template void backward_scale(const Backward<F64>&);
extern template void forward_backward_scale(const ForwardBackward<F64>&);

}  // namespace tigon::reference::cross_entropy
