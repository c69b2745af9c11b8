// Oracle of cross_entropy in plain Eigen, and S: the same formulas with every term replaced by its
// absolute value. x is a row of logits after the softcap.
#pragma once
#include <cmath>
#include <limits>

#include "kernels/cross_entropy/cross_entropy.h"
#include "reference/eigen_view.h"

namespace tigon::reference::cross_entropy {

using tigon::cross_entropy::Backward;
using tigon::cross_entropy::Forward;
using tigon::cross_entropy::ForwardBackward;

template <class S>
Row<S> softcapped(const Row<S>& logits, double softcap) {
  if (softcap <= 0) return logits;
  return (logits / S(softcap)).tanh() * S(softcap);
}

// Derivative of the softcap, 1 - tanh^2, without the cancellation.
template <class S>
Row<S> softcap_slope(const Row<S>& logits, double softcap) {
  if (softcap <= 0) return Row<S>::Constant(logits.size(), S(1));
  return (logits / S(softcap)).cosh().square().inverse();
}

template <class S>
S largest(const Row<S>& x) {
  S m = x[0];
  for (const S& v : x)
    if (v > m) m = v;
  return m;
}

// log sum exp(x): -inf when every logit is -inf, NaN when one is NaN or +inf.
template <class S>
S log_sum_exp(const Row<S>& x) {
  using std::log;
  const S m = largest(x);
  if ((x == S(-std::numeric_limits<double>::infinity())).all()) return m;
  return m + log(S((x - m).exp().sum()));
}

inline bool is_class(int64_t y, int64_t vocabulary) { return y >= 0 && y < vocabulary; }

template <class S>
S row_loss(const Row<S>& x, const S& lse, int64_t y, const LossOptions& o) {
  if (!is_class(y, x.size())) return S(std::numeric_limits<double>::quiet_NaN());
  const double smoothing = o.label_smoothing;
  S loss = S(1 - smoothing) * (lse - x[y]) + S(o.z_loss) * lse * lse;
  if (smoothing != 0) loss += S(smoothing) * (lse - x.mean());  // the mean may be -inf
  return loss;
}

// dloss/dlogits of one row, for an upstream gradient of 1.
template <class S>
Row<S> row_gradient(const Row<S>& logits, const S& lse, int64_t y, const LossOptions& o) {
  if (!is_class(y, logits.size()))
    return Row<S>::Constant(logits.size(), S(std::numeric_limits<double>::quiet_NaN()));
  const double smoothing = o.label_smoothing;
  const Row<S> p = (softcapped(logits, o.softcap) - lse).exp();
  Row<S> g = p * (S(1) + S(2.0 * o.z_loss) * lse) - S(smoothing / logits.size());
  g[y] -= S(1 - smoothing);
  return g * softcap_slope(logits, o.softcap);
}

// What one row adds to the loss: 1 / rows that are not ignored for the mean, else 1.
inline double row_share(const View<const int64_t, 1>& target, const LossOptions& o) {
  if (o.reduction != Reduction::kMean) return 1;
  const double rows = (array(target) != o.ignore_index).count();
  return rows > 0 ? 1 / rows : 0;
}

// dL/d(row loss) [T].
template <class Args>
Row<typename Args::Elem> upstream(const Args& a) {
  using S = typename Args::Elem;
  Row<S> u = Row<S>::Constant(a.target.shape[0], S(row_share(a.target, a)));
  for (int64_t t = 0; t < u.size(); ++t)
    if (a.dloss) u[t] *= a.dloss.data[a.reduction == Reduction::kNone ? t : 0];
  return u;
}

// row_loss [T] is 0 for an ignored row.
template <class Args, class S>
void write_loss(const Args& a, const Row<S>& row_loss) {
  if (a.reduction == Reduction::kNone)
    array(a.loss) = row_loss;
  else
    a.loss.data[0] = row_loss.sum() * S(row_share(a.target, a));
}

template <class P>
void forward(const Forward<P>& a) {
  using S = typename P::Elem;
  Row<S> loss = Row<S>::Zero(a.target.shape[0]);
  array(a.lse).setZero();
  for (int64_t t = 0; t < loss.size(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const Row<S> x = softcapped<S>(array(a.logits).row(t), a.softcap);
    a.lse.data[t] = log_sum_exp(x);
    loss[t] = row_loss(x, a.lse.data[t], a.target.data[t], a);
  }
  write_loss(a, loss);
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  const Row<S> g = upstream(a);
  for (int64_t t = 0; t < g.size(); ++t) {
    auto row = array(a.logits).row(t);
    if (a.target.data[t] == a.ignore_index)
      row.setZero();
    else
      row = g[t] * row_gradient<S>(row, a.lse.data[t], a.target.data[t], a);
  }
}

template <class P>
Forward<P> forward_part(const ForwardBackward<P>& a) {
  Forward<P> f;
  static_cast<LossOptions&>(f) = a;
  f.logits = as_const(a.logits);
  f.target = a.target;
  f.loss = a.loss;
  f.lse = a.lse;
  return f;
}

template <class P>
Backward<P> backward_part(const ForwardBackward<P>& a) {
  Backward<P> b;
  static_cast<LossOptions&>(b) = a;
  b.logits = a.logits;
  b.target = a.target;
  b.lse = as_const(a.lse);
  b.dloss = a.dloss;
  return b;
}

template <class P>
void forward_backward(const ForwardBackward<P>& a) {
  forward(forward_part(a));
  backward(backward_part(a));
}

// ---- S ------------------------------------------------------------------------------------------

// |x|, with 0 for a logit of -inf, which takes no part in any sum.
template <class S>
Row<S> finite_abs(const Row<S>& x) {
  return x.isInf().select(Row<S>::Zero(x.size()), x.abs());
}

// |m| + |lse| + 1: the sum of exponentials is at least 1, so its logarithm is off by its roundings.
template <class S>
S lse_scale(const Row<S>& x, const S& lse) {
  using std::abs;
  return abs(largest(x)) + abs(lse) + S(1);
}

template <class S>
S row_loss_scale(const Row<S>& x, const S& lse, int64_t y, const LossOptions& o) {
  using std::abs;
  S scale = lse_scale(x, lse) * (S(1) + S(2.0 * o.z_loss) * abs(lse));
  if (is_class(y, x.size())) scale += abs(x[y]);
  if (o.label_smoothing != 0) scale += S(o.label_smoothing) * x.abs().mean();
  return scale;
}

// p is off by the roundings of its exponent x - lse, one each of x, m and lse, beside those of a
// sum over V and of an elementary function. With n = V and c0 = 24 the budget
// (4 sqrt(V) + c0) u S is then (4 sqrt(V) + 24 + |x| + |m| + |lse|) u p. Where exp underflows in
// fp32, p is off by up to 2^-126.
template <class S>
Row<S> probability_scale(const Row<S>& x, const S& lse) {
  using std::abs;
  using std::sqrt;
  constexpr double kElementary = 24, kUnderflow = 0x1p-106;
  const S expected = S(4) * sqrt(S(x.size())) + S(kElementary);
  const Row<S> exponent = finite_abs(x) + abs(largest(x)) + abs(lse);
  return (x - lse).exp() * (S(1) + exponent / expected) + S(kUnderflow);
}

// (p + q + 2 z |lse| p) |softcap'|; the softcap's derivative is 1 - tanh^2, so its scale 1 +
// tanh^2.
template <class S>
Row<S> row_gradient_scale(const Row<S>& logits, const S& lse, int64_t y, const LossOptions& o) {
  using std::abs;
  const Row<S> x = softcapped(logits, o.softcap);
  Row<S> g = probability_scale(x, lse) * (S(1) + S(2.0 * o.z_loss) * (abs(lse) + S(1)));
  g += S(double(o.label_smoothing) / x.size());
  if (is_class(y, x.size())) g[y] += S(1 - double(o.label_smoothing));
  return g * (S(2) - softcap_slope(logits, o.softcap));
}

template <class P>
void forward_scale(const Forward<P>& a) {
  using S = typename P::Elem;
  Row<S> loss = Row<S>::Zero(a.target.shape[0]);
  array(a.lse).setZero();
  for (int64_t t = 0; t < loss.size(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const Row<S> x = softcapped<S>(array(a.logits).row(t), a.softcap);
    const S lse = log_sum_exp(x);
    a.lse.data[t] = lse_scale(x, lse);
    loss[t] = row_loss_scale(x, lse, a.target.data[t], a);
  }
  write_loss(a, loss);
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  const Row<S> g = upstream(a).abs();
  for (int64_t t = 0; t < g.size(); ++t) {
    auto row = array(a.logits).row(t);
    if (a.target.data[t] == a.ignore_index)
      row.setZero();
    else
      row = g[t] * row_gradient_scale<S>(row, a.lse.data[t], a.target.data[t], a);
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

}  // namespace tigon::reference::cross_entropy
