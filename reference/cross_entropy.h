// SPDX-License-Identifier: Apache-2.0
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

// exp(x - lse), and 0 where that is exp(-inf): Eigen's exp of a packet ends at the smallest normal
// number, which times -inf is no limit of p log p.
template <class S>
Row<S> probabilities(const Row<S>& x, const S& lse) {
  const Row<S> log_p = x - lse;
  const S never(-std::numeric_limits<double>::infinity());
  return (log_p == never).select(Row<S>::Zero(x.size()), log_p.exp());
}

inline bool is_class(int64_t y, int64_t vocabulary) { return y >= 0 && y < vocabulary; }

// What class weights, one each where there are none, and the reduction make of rows.
template <class S>
struct Weighting {
  Row<S> of;      // [V]
  S all;          // their sum
  S share;        // of a row in the loss: 1 / sum of the weights of rows that count, or 1
  S z_loss;       // such that z_loss share is the option's divided by the rows that count
  S plain_share;  // of a row in what has no weight: 1 / rows that count, or 1

  S of_class(int64_t y) const { return is_class(y, of.size()) ? S(of[y]) : S(0); }
};

template <class Args>
Weighting<typename Args::Elem> weighting(const Args& a, int64_t vocabulary) {
  using S = typename Args::Elem;
  Weighting<S> w{Row<S>::Constant(vocabulary, S(1)), S(0), S(1), S(a.z_loss), S(1)};
  if (a.class_weight) w.of = array(a.class_weight);
  w.all = w.of.sum();
  if (a.reduction != Reduction::kMean) return w;
  if (a.normaliser) {
    const S n = a.normaliser.data[0];
    w.share = w.plain_share = n != S(0) ? S(S(1) / n) : S(0);
    return w;
  }
  double rows = 0;
  S sum(0);
  for (int64_t t = 0; t < a.target.shape[0]; ++t) {
    const int64_t y = a.target.data[t];
    if (y == a.ignore_index) continue;
    ++rows;
    sum += a.class_weight ? w.of_class(y) : S(1);
  }
  w.plain_share = S(rows > 0 ? 1 / rows : 0);
  w.share = sum != S(0) ? S(S(1) / sum) : S(0);
  if (a.class_weight) w.z_loss = S(a.z_loss) * sum * w.plain_share;
  return w;
}

template <class S>
S row_loss(const Row<S>& x, const S& lse, int64_t y, const LossOptions& o, const Weighting<S>& w) {
  if (!is_class(y, x.size())) return S(std::numeric_limits<double>::quiet_NaN());
  const double smoothing = o.label_smoothing;
  S loss = S(1 - smoothing) * w.of[y] * (lse - x[y]) + w.z_loss * lse * lse;
  if (smoothing != 0)  // the mean may be -inf
    loss += S(smoothing / double(x.size())) * (w.all * lse - (w.of * x).sum());
  return loss;
}

// (1 - a) w_y + a / V sum w + 2 z lse: what multiplies p.
template <class S>
S probability_factor(const S& lse, int64_t y, const LossOptions& o, const Weighting<S>& w) {
  const double smoothing = o.label_smoothing;
  return S(1 - smoothing) * w.of_class(y) + S(smoothing / double(w.of.size())) * w.all +
         S(2) * w.z_loss * lse;
}

// dloss/dlogits of one row, for an upstream gradient of 1.
template <class S>
Row<S> row_gradient(const Row<S>& logits, const S& lse, int64_t y, const LossOptions& o,
                    const Weighting<S>& w) {
  if (!is_class(y, logits.size()))
    return Row<S>::Constant(logits.size(), S(std::numeric_limits<double>::quiet_NaN()));
  const double smoothing = o.label_smoothing;
  const Row<S> p = probabilities<S>(softcapped(logits, o.softcap), lse);
  Row<S> g = p * probability_factor(lse, y, o, w) - S(smoothing / double(logits.size())) * w.of;
  g[y] -= S(1 - smoothing) * w.of[y];
  return g * softcap_slope(logits, o.softcap);
}

// 1 where y is the first class with the largest logit; a NaN is larger than nothing.
template <class S>
double row_accuracy(const Row<S>& logits, int64_t y) {
  if (!is_class(y, logits.size())) return std::numeric_limits<double>::quiet_NaN();
  bool right = logits[y] == logits[y];
  for (int64_t i = 0; i < logits.size(); ++i)
    right = right && !(logits[i] > logits[y] || (i < y && logits[i] == logits[y]));
  return right ? 1 : 0;
}

// -sum p log p, where 0 log 0 = 0.
template <class S>
S row_entropy(const Row<S>& x, const S& lse) {
  const Row<S> p = probabilities(x, lse);
  S sum(0);
  for (int64_t i = 0; i < x.size(); ++i)
    if (!(p[i] == S(0))) sum -= p[i] * (x[i] - lse);
  return sum;
}

// dL/d(row loss) [T].
template <class Args>
Row<typename Args::Elem> upstream(const Args& a, const Weighting<typename Args::Elem>& w) {
  using S = typename Args::Elem;
  Row<S> u = Row<S>::Constant(a.target.shape[0], w.share);
  for (int64_t t = 0; t < u.size(); ++t)
    if (a.dloss) u[t] *= a.dloss.data[a.reduction == Reduction::kNone ? t : 0];
  return u;
}

// A row's loss and what is returned beside it; all 0 for an ignored row.
template <class S>
struct RowResults {
  Row<S> loss, z_part, accuracy, entropy;
  explicit RowResults(int64_t rows) { loss = z_part = accuracy = entropy = Row<S>::Zero(rows); }
};

template <class Args, class S>
void write_results(const Args& a, const RowResults<S>& rows, const Weighting<S>& w) {
  const auto write = [&](const auto& out, const Row<S>& values, const S& share) {
    if (!out) return;
    if (a.reduction == Reduction::kNone)
      array(out) = values;
    else
      out.data[0] = values.sum() * share;
  };
  write(a.loss, rows.loss, w.share);
  write(a.z_part, rows.z_part, w.plain_share);
  write(a.accuracy, rows.accuracy, w.plain_share);
  write(a.entropy, rows.entropy, w.plain_share);
}

template <class P>
void forward(const Forward<P>& a) {
  using S = typename P::Elem;
  const Weighting<S> w = weighting(a, a.logits.shape[1]);
  RowResults<S> rows(a.target.shape[0]);
  array(a.lse).setZero();
  for (int64_t t = 0; t < rows.loss.size(); ++t) {
    const int64_t y = a.target.data[t];
    if (y == a.ignore_index) continue;
    const Row<S> logits = array(a.logits).row(t), x = softcapped<S>(logits, a.softcap);
    const S lse = a.lse.data[t] = log_sum_exp(x);
    rows.loss[t] = row_loss(x, lse, y, a, w);
    rows.z_part[t] = S(a.z_loss) * lse * lse;
    rows.accuracy[t] = row_accuracy(logits, y);
    if (a.entropy) rows.entropy[t] = row_entropy(x, lse);
  }
  write_results(a, rows, w);
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  const Weighting<S> w = weighting(a, a.logits.shape[1]);
  const Row<S> g = upstream(a, w);
  for (int64_t t = 0; t < g.size(); ++t) {
    auto row = array(a.logits).row(t);
    if (a.target.data[t] == a.ignore_index)
      row.setZero();
    else
      row = g[t] * row_gradient<S>(row, a.lse.data[t], a.target.data[t], a, w);
  }
}

// Takes what is returned beside the loss, class weights and the normaliser.
template <class From, class To>
void take_extras(const From& from, To* to) {
  static_cast<LossOptions&>(*to) = from;
  to->class_weight = from.class_weight;
  to->normaliser = from.normaliser;
  if constexpr (requires { to->entropy; }) {
    to->z_part = from.z_part;
    to->accuracy = from.accuracy;
    to->entropy = from.entropy;
  }
}

template <class P>
Forward<P> forward_part(const ForwardBackward<P>& a) {
  Forward<P> f;
  take_extras(a, &f);
  f.logits = as_const(a.logits);
  f.target = a.target;
  f.loss = a.loss;
  f.lse = a.lse;
  return f;
}

template <class P>
Backward<P> backward_part(const ForwardBackward<P>& a) {
  Backward<P> b;
  take_extras(a, &b);
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

// Compiled once, in cross_entropy.cpp.
extern template Row<double> softcapped(const Row<double>&, double);
extern template Row<double> softcap_slope(const Row<double>&, double);
extern template double log_sum_exp(const Row<double>&);
extern template Row<double> probabilities(const Row<double>&, const double&);
extern template double row_loss(const Row<double>&, const double&, int64_t, const LossOptions&,
                                const Weighting<double>&);
extern template Row<double> row_gradient(const Row<double>&, const double&, int64_t,
                                         const LossOptions&, const Weighting<double>&);
extern template double row_entropy(const Row<double>&, const double&);
extern template void forward(const Forward<F64>&);
extern template void backward(const Backward<F64>&);
extern template void forward_backward(const ForwardBackward<F64>&);

}  // namespace tigon::reference::cross_entropy
