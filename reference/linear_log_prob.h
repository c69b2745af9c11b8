// SPDX-License-Identifier: Apache-2.0
// Oracle of linear_log_prob in plain Eigen: log_prob's oracle on z = x w^T + bias. S is the same
// formulas with every term replaced by its absolute value, S2 the effect of storing logits and
// their gradient in the element type, as that of linear_cross_entropy.
//
// A budget's n is the length of all sums on the path: H + V for logp, lse, entropy and dx, H + V +
// T for dw and dbias; its c0 is 24, its k_int 1 for all.
#pragma once
#include <cmath>
#include <limits>

#include "kernels/linear_log_prob/linear_log_prob.h"
#include "reference/linear_head.h"
#include "reference/log_prob.h"

namespace tigon::reference::linear_log_prob {

using linear_head::breaks_promise;
using linear_head::finite_part;
using linear_head::gradients_of;
using linear_head::layer_of;
using linear_head::logits;
using linear_head::logits_scale;
using linear_head::rounded_sizes;
using tigon::linear_log_prob::Backward;
using tigon::linear_log_prob::Forward;

// The call of log_prob on these logits.
template <class P>
tigon::log_prob::Forward<P> on_logits(const Forward<P>& a, Rows<typename P::Elem>& z) {
  tigon::log_prob::Forward<P> f;
  static_cast<tigon::log_prob::Options&>(f) = a;
  f.logits = view(static_cast<const typename P::Elem*>(z.data()), z.rows(), z.cols());
  f.target = a.target;
  f.logp = a.logp;
  f.lse = a.lse;
  f.entropy = a.entropy;
  return f;
}
// Its gradient takes the place of the logits.
template <class P>
tigon::log_prob::Backward<P> on_logits(const Backward<P>& a, Rows<typename P::Elem>& z) {
  tigon::log_prob::Backward<P> b;
  static_cast<tigon::log_prob::Options&>(b) = a;
  b.dlogits = view(z.data(), z.rows(), z.cols());
  b.logits = view(static_cast<const typename P::Elem*>(z.data()), z.rows(), z.cols());
  b.target = a.target;
  b.lse = a.lse;
  b.dlogp = a.dlogp;
  b.dentropy = a.dentropy;
  b.entropy = a.entropy;
  return b;
}

template <class P>
void forward(const Forward<P>& a) {
  using S = typename P::Elem;
  if (breaks_promise(a)) {
    for (const auto& out : {a.logp, a.lse, a.entropy})
      if (out) array(out).setConstant(S(std::numeric_limits<double>::quiet_NaN()));
    return;
  }
  Rows<S> z = logits(a);
  log_prob::forward(on_logits(a, z));
}

// dlogits [T, V].
template <class P>
Rows<typename P::Elem> logits_gradient(const Backward<P>& a) {
  Rows<typename P::Elem> z = logits(a);
  log_prob::backward(on_logits(a, z));
  return z;
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  if (breaks_promise(a))
    return linear_head::fill_gradients(gradients_of(a),
                                       S(std::numeric_limits<double>::quiet_NaN()));
  linear_head::write_gradients(a, logits_gradient(a));
}

// ---- how the results of a row follow its logits -------------------------------------------------

// To first order, a change dz of the logits moves each result by its gradient . dz.
template <class S>
struct Sensitivity {
  Row<S> p, lse, logp, entropy;
};

template <class S>
Sensitivity<S> sensitivity(const Row<S>& logits, int64_t y, double temperature) {
  const Row<S> z = logits / S(temperature);
  const S lse = cross_entropy::log_sum_exp(z), inverse = S(1 / temperature);
  const Row<S> p = cross_entropy::probabilities(z, lse);
  const S entropy = cross_entropy::row_entropy(z, lse);
  const Row<S> surprise = (p == S(0)).select(Row<S>::Zero(p.size()), p * (lse - z - entropy));
  Sensitivity<S> r{p, p * inverse, -p * inverse, surprise * inverse};
  if (cross_entropy::is_class(y, p.size())) r.logp[y] += inverse;
  return r;
}

// How entry i of dlogits follows logit i, in absolute value; it follows none of the others, because
// lse and the entropy are given.
template <class P, class S>
Row<S> gradient_slope(const Backward<P>& a, int64_t t, const Row<S>& logits) {
  const double tau = a.temperature;
  const Row<S> log_p = log_prob::log_p_of<S>(logits / S(tau), a.lse.data[t]);
  const Row<S> p = cross_entropy::probabilities(log_p, S(0));
  Row<S> slope = p * a.dlogp.data[t];
  if (a.dentropy) {
    const Row<S> by_p = p * (log_prob::entropy_of(a, t) + S(1));
    slope += a.dentropy.data[t] * (log_prob::times_log_p<S>(p, p, log_p) + by_p);
  }
  return slope.abs() / S(tau * tau);
}

// ---- S ------------------------------------------------------------------------------------------

// Beside log_prob's own S: a logit is off by the roundings of its sum.
template <class P>
void forward_scale(const Forward<P>& a) {
  using S = typename P::Elem;
  Rows<S> z = logits(a);
  const Rows<S> z_scale = logits_scale(layer_of(a));
  log_prob::forward_scale(on_logits(a, z));
  for (int64_t t = 0; t < z.rows(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const auto of = sensitivity<S>(z.row(t), a.target.data[t], a.temperature);
    const auto add = [&](const auto& out, const Row<S>& gradient) {
      if (out) out.data[t] += (gradient.abs() * z_scale.row(t)).sum();
    };
    add(a.logp, of.logp);
    add(a.lse, of.lse);
    add(a.entropy, of.entropy);
  }
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> z = logits(a), z_scale = logits_scale(layer_of(a));
  Rows<S> d = z;  // S of dlogits
  log_prob::backward_scale(on_logits(a, d));
  for (int64_t t = 0; t < z.rows(); ++t)
    if (a.target.data[t] != a.ignore_index)
      d.row(t) += gradient_slope<P, S>(a, t, z.row(t)) * z_scale.row(t);
  linear_head::write_gradients_scale(layer_of(a), gradients_of(a), d);
}

// ---- S2 -----------------------------------------------------------------------------------------

// A logit is stored as z_j (1 + delta_j), for z_j see rounded_sizes(), and an entry of dlogits D_i
// as D_i (1 + epsilon_i). S2 is the 2-norm of the factors of the deltas and epsilons; roundings
// that are not independent are in rounded_alike.h.

template <class P>
void forward_intermediate(const Forward<P>& a) {
  using std::sqrt;
  using S = typename P::Elem;
  const Rows<S> z = logits(a);
  const linear_head::Stored<S> stored_logits(layer_of(a), z);
  const Rows<S>& sizes = stored_logits.sizes;
  for (const auto& out : {a.logp, a.lse, a.entropy})
    if (out) array(out).setZero();
  for (int64_t t = 0; t < z.rows(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const auto of = sensitivity<S>(z.row(t), a.target.data[t], a.temperature);
    const Dependence<S> depend = stored_logits.dependence(t);
    const auto moved = [&](const Row<S>& gradient) {
      return S(sqrt(squared_norm<S>(gradient * sizes.row(t), depend)));
    };
    a.logp.data[t] = moved(of.logp);
    a.lse.data[t] = moved(of.lse);
    if (a.entropy)
      a.entropy.data[t] = moved(of.entropy) + linear_head::second_order<S>(
                                                  of.p, sizes.row(t) / S(double(a.temperature)));
  }
}

template <class P>
void backward_intermediate(const Backward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> w = array(a.w);  // [V, H]
  const Rows<S> z = logits(a);
  const linear_head::Stored<S> stored_logits(layer_of(a), z);
  const Rows<S>& sizes = stored_logits.sizes;
  const Rows<S> d = logits_gradient(a);
  linear_head::Moved<S> moved(z.rows(), z.cols(), w.cols());
  for (int64_t t = 0; t < z.rows(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const Row<S> stored = d.row(t).abs();
    moved.stored.row(t) = stored;
    const Dependence<S> depend = stored_logits.dependence(t);
    // With one delta for all logits of a row, a mean over the columns of dw averages nothing: twice
    // its bound.
    const S bound(depend.alike ? 2 : 1);
    const Row<S> by_logit = bound * gradient_slope<P, S>(a, t, z.row(t)) * sizes.row(t);
    moved.d_squares.row(t) = stored.square() + by_logit.square();
    moved.d_sums.row(t) = stored + by_logit;
    if (!linear_head::has_dx(a)) continue;
    const auto to_dx = [&](const Row<S>& factors, const Dependence<S>& of) {
      return squared_norms<S>(scaled_rows<S>(w, factors), of);
    };
    moved.dx_squares.row(t) = to_dx(stored, Dependence<S>(stored)) + to_dx(by_logit, depend);
  }
  linear_head::write_gradients_intermediate(layer_of(a), gradients_of(a), moved,
                                            stored_logits.finite);
}

}  // namespace tigon::reference::linear_log_prob
