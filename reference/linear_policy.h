// SPDX-License-Identifier: Apache-2.0
// Oracle of linear_policy in plain Eigen: log_prob's oracle on z = x w^T + bias, the losses of
// token_losses.h on that, and their derivative by dual numbers.
#pragma once
#include <cmath>
#include <limits>

#include "reference/linear_log_prob.h"
#include "reference/token_losses.h"

namespace tigon::reference::linear_policy {

using linear_head::breaks_promise;
using linear_head::gradients_of;
using linear_head::layer_of;
using tigon::linear_policy::Forward;
using tigon::linear_policy::ForwardBackward;

// ---- a token ------------------------------------------------------------------------------------

// The loss of a token, its derivative by logp as the loss has it (cispo's ratio is a constant
// there), and how both really move with logp.
template <class S>
struct Token {
  S loss, slope, loss_moves, slope_moves;
  S clipped = S(0), kl = S(0), kl_moves = S(0);
  // S of loss, slope and kl but for that of logp.
  S scale = S(0), slope_scale = S(0), kl_scale = S(0);
  // How far log(ratio) is from where the slope, or `clipped`, jumps, and by how much the slope
  // does.
  S far = S(std::numeric_limits<double>::infinity()), jump = S(0);
};

template <class S, class T>
S given(const View<T, 1>& v, int64_t t, double otherwise) {
  return v ? S(v.data[t]) : S(otherwise);
}

template <class S, class Args>
S importance(const Args& a, int64_t t) {
  using std::exp;
  if (!a.sampling_logp) return S(1);
  const S weight = exp(a.old_logp.data[t] - a.sampling_logp.data[t]);
  return weight > S(a.importance_cap) ? S(a.importance_cap) : weight;
}

// Expressions of the tokens' own, without the row's weight.
template <class Args, class S>
Token<S> token_of(const Args& a, int64_t t, const S& logp) {
  using std::abs;
  using std::exp;
  using std::log;
  using D1 = Dual<S>;   // as things move
  using D2 = Dual<D1>;  // as the loss derives them
  const D2 moving(D1(logp, S(1)), D1(S(1), S(0)));
  const auto constant = [](const S& v) { return D2(D1(v, S(0)), D1(S(0), S(0))); };
  const S advantage = S(a.advantage.data[t]) * importance<S>(a, t);
  const S apart = a.old_logp ? S(logp - a.old_logp.data[t]) : S(logp == logp ? S(0) : logp);
  const S r = exp(apart);
  // Without old_logp it is 1 whatever logp is, and derived as exp(logp - logp) with one a constant.
  const D2 ratio =
      a.old_logp ? exp(moving - constant(a.old_logp.data[t])) : D2(D1(r, S(0)), D1(r, S(0)));
  const D2 f = token_loss(a, moving, ratio, constant(advantage));
  // exp of a difference, and the weights, with a few roundings of their exponents.
  const S roundings =
      S(3) + abs(apart) +
      (a.sampling_logp ? S(abs(a.old_logp.data[t] - a.sampling_logp.data[t])) : S(0));
  Token<S> of{f.value.value, f.slope.value, f.value.slope, f.slope.slope};
  of.scale = (abs(of.loss) + abs(of.loss_moves)) * roundings;
  of.slope_scale = (abs(of.slope) + abs(of.slope_moves)) * roundings;
  const Bounds b = bounds(a, advantage > S(0) ? 1 : advantage < S(0) ? -1 : 0);
  of.clipped = r != r ? r : S(r < S(b.low) || r > S(b.high) ? 1.0 : 0.0);
  if (a.old_logp)
    for (const double bound : {b.low, b.high})
      if (bound > 0 && std::isfinite(bound) && abs(apart - S(std::log(bound))) < of.far)
        of.far = abs(apart - S(std::log(bound)));
  if (a.objective == Objective::kClip) of.jump = abs(advantage) * r;
  if (!a.ref_logp) return of;
  const D2 kl = k3(moving, constant(a.ref_logp.data[t]));
  const S d = a.ref_logp.data[t] - logp, beta = S(a.kl_weight);
  of.kl = kl.value.value;
  of.kl_moves = kl.value.slope;
  of.kl_scale = abs(of.kl_moves) * (S(2) + abs(d)) + abs(d);
  if (a.kl_weight == 0) return of;
  of.loss += beta * of.kl;
  of.slope += beta * kl.slope.value;
  of.loss_moves += beta * kl.value.slope;
  of.slope_moves += beta * kl.slope.slope;
  of.scale += abs(beta) * of.kl_scale;
  of.slope_scale += abs(beta) * (abs(of.kl_moves) + exp(d) * (S(1) + abs(d)));
  return of;
}

// ---- rows ---------------------------------------------------------------------------------------

// Of each row; 0 for an ignored one.
template <class S>
struct Results {
  Row<S> loss, kl, clipped, entropy;
  explicit Results(int64_t rows) { loss = kl = clipped = entropy = Row<S>::Zero(rows); }
};

// What mean makes of a sum over rows: 1 / rows that count, or 1.
template <class Args>
auto share_of(const Args& a) {
  using S = typename Args::Elem;
  if (a.reduction != Reduction::kMean) return S(1);
  S n(0);
  for (int64_t t = 0; t < a.target.shape[0]; ++t)
    if (a.target.data[t] != a.ignore_index) n += S(1);
  if (a.normaliser) n = a.normaliser.data[0];
  return n != S(0) ? S(S(1) / n) : S(0);
}

template <class Args, class S>
void write_results(const Args& a, const Results<S>& rows) {
  const S share = share_of(a);
  const auto write = [&](const auto& out, const Row<S>& values) {
    if (!out) return;
    if (a.reduction == Reduction::kNone)
      array(out) = values;
    else
      out.data[0] = values.sum() * share;
  };
  write(a.loss, rows.loss);
  write(a.kl, rows.kl);
  write(a.clipped, rows.clipped);
  write(a.entropy, rows.entropy);
}

// What multiplies a row's gradient, beside its slope.
template <class Args>
auto factor_of(const Args& a, int64_t t) {
  using S = typename Args::Elem;
  S g = share_of(a) * given<S>(a.weight, t, 1);
  if constexpr (requires { a.dloss; })
    g *= given<S>(a.dloss, a.reduction == Reduction::kNone ? t : 0, 1);
  return g;
}

// Log-probabilities, their lse and entropy of rows of logits, or S, or S2 of them.
template <class S>
struct LogProbs {
  Row<S> logp, lse, entropy;
  explicit LogProbs(int64_t rows) { logp = lse = entropy = Row<S>::Zero(rows); }
};

// Calls pass(call of linear_log_prob.forward) on the layer; returns what it writes.
template <class Args, class Pass>
auto log_probs(const Args& a, const Pass& pass) {
  using S = typename Args::Elem;
  LogProbs<S> r(a.x.shape[0]);
  tigon::linear_log_prob::Forward<Policy<S, S>> f;
  f.ignore_index = a.ignore_index;
  f.temperature = a.temperature;
  f.x = a.x;
  f.w = a.w;
  f.bias = a.bias;
  f.target = a.target;
  f.logp = view(r.logp.data(), r.logp.size());
  f.lse = view(r.lse.data(), r.lse.size());
  f.entropy = view(r.entropy.data(), r.entropy.size());
  pass(f);
  return r;
}
template <class Args>
auto log_probs(const Args& a) {
  return log_probs(a, [](const auto& f) { linear_log_prob::forward(f); });
}

// Calls f(t, token) of every row that is not ignored.
template <class Args, class S, class F>
void for_tokens(const Args& a, const LogProbs<S>& of, const F& f) {
  for (int64_t t = 0; t < a.target.shape[0]; ++t)
    if (a.target.data[t] != a.ignore_index) f(t, token_of<Args, S>(a, t, of.logp[t]));
}

template <class Args>
void fill_nan(const Args& a) {
  const typename Args::Elem nan(std::numeric_limits<double>::quiet_NaN());
  for (const auto& out : {a.loss, a.kl, a.clipped, a.entropy, a.logp})
    if (out) array(out).setConstant(nan);
  if constexpr (requires { a.dw; }) linear_head::fill_gradients(gradients_of(a), nan);
}

template <class Args>
void losses(const Args& a) {
  using S = typename Args::Elem;
  const LogProbs<S> of = log_probs(a);
  Results<S> rows(a.target.shape[0]);
  rows.entropy = of.entropy;
  for_tokens(a, of, [&](int64_t t, const Token<S>& token) {
    rows.loss[t] = given<S>(a.weight, t, 1) * token.loss;
    rows.kl[t] = token.kl;
    rows.clipped[t] = token.clipped;
  });
  write_results(a, rows);
  if (a.logp) array(a.logp) = of.logp;
}

template <class P>
void forward(const Forward<P>& a) {
  breaks_promise(a) ? fill_nan(a) : losses(a);
}

template <class P>
void forward_backward(const ForwardBackward<P>& a) {
  if (breaks_promise(a)) return fill_nan(a);
  using S = typename P::Elem;
  losses(a);
  const LogProbs<S> of = log_probs(a);
  Row<S> dlogp = Row<S>::Zero(of.logp.size());
  for_tokens(a, of,
             [&](int64_t t, const Token<S>& token) { dlogp[t] = factor_of(a, t) * token.slope; });
  Rows<S> z = linear_head::logits(a);
  tigon::log_prob::Backward<P> b;
  b.ignore_index = a.ignore_index;
  b.temperature = a.temperature;
  b.dlogits = view(z.data(), z.rows(), z.cols());
  b.logits = as_const(b.dlogits);
  b.target = a.target;
  b.lse = view(static_cast<const S*>(of.lse.data()), of.lse.size());
  b.dlogp = view(static_cast<const S*>(dlogp.data()), dlogp.size());
  log_prob::backward(b);
  linear_head::write_gradients(a, z);
}

}  // namespace tigon::reference::linear_policy
