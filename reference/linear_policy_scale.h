// SPDX-License-Identifier: Apache-2.0
// S and S2 of linear_policy: its formulas with every term replaced by its absolute value, and the
// effect of storing logits and their gradient in the element type, as that of linear_cross_entropy.
//
// A budget's n is the length of all sums on the path: H + V for logp and dx, H + V + T for what is
// summed over rows; its c0 is 24, its k_int 1 for all.
#pragma once
#include <cmath>
#include <vector>

#include "reference/linear_policy.h"

namespace tigon::reference::linear_policy {

// ---- S ------------------------------------------------------------------------------------------

// How far a stored or rounded logp may be from the oracle's: the budget of linear_log_prob's.
template <class Args, class S>
S logp_error(const Args& a, DType type, const S& scale, const S& intermediate) {
  const double n = double(a.x.shape[1]) + row_sum_terms(a.w.shape[0]);
  return S((4 * std::sqrt(n) + 24) * 0x1p-24) * scale + S(4 * unit_roundoff(type)) * intermediate;
}

// What makes a budget of at least (4 + 24) 2^-24 S one of `size`.
inline constexpr double kAnything = 0x1p24 / 28;

// The token with the fastest that its loss, slope and k3 move while logp does by up to `error`:
// across a bound of the ratio, or along an exponential, that is not what they do at logp itself.
template <class Args, class S>
Token<S> token_near(const Args& a, int64_t t, const S& logp, const S& error) {
  using std::abs;
  const auto widen = [](S& moves, const S& other) {
    moves = abs(moves);
    if (abs(other) > moves) moves = abs(other);
  };
  Token<S> of = token_of<Args, S>(a, t, logp);
  for (int step = -4; step <= 4; ++step) {
    const Token<S> other = token_of<Args, S>(a, t, S(logp + error * S(step / 4.0)));
    widen(of.loss_moves, other.loss_moves);
    widen(of.slope_moves, other.slope_moves);
    widen(of.kl_moves, other.kl_moves);
    widen(of.jump, other.jump);
  }
  return of;
}

// The rows that are not ignored, for all that asks about them.
template <class S>
struct TokensNear {
  struct Near {
    int64_t t;
    Token<S> token;
    bool is_doubtful;  // the ratio may be on the other side of a bound, where the loss jumps
  };
  LogProbs<S> of, scale;  // log-probabilities, and their S
  std::vector<Near> rows;

  template <class Args>
  TokensNear(const Args& a, DType type)
      : of(log_probs(a)),
        scale(log_probs(a, [](const auto& c) { linear_log_prob::forward_scale(c); })) {
    const LogProbs<S> stored =
        log_probs(a, [](const auto& c) { linear_log_prob::forward_intermediate(c); });
    for (int64_t t = 0; t < a.target.shape[0]; ++t) {
      if (a.target.data[t] == a.ignore_index) continue;
      const S error = S(4) * logp_error(a, type, scale.logp[t], stored.logp[t]);
      const Token<S> token = token_near(a, t, S(of.logp[t]), error);
      rows.push_back({t, token, token.far <= error});
    }
  }
};

template <class Args, class S>
void losses_scale(const Args& a, const TokensNear<S>& near) {
  using std::abs;
  Results<S> rows(a.target.shape[0]);
  if (a.logp) array(a.logp).setZero();
  for (const auto& [t, token, is_doubtful] : near.rows) {
    const S logp = near.scale.logp[t];
    rows.loss[t] = abs(given<S>(a.weight, t, 1)) * (token.scale + abs(token.loss_moves) * logp);
    rows.kl[t] = token.kl_scale + abs(token.kl_moves) * logp;
    rows.clipped[t] = S(is_doubtful ? kAnything : 1.0);
    rows.entropy[t] = near.scale.entropy[t] + abs(near.of.entropy[t]);
    if (a.logp) a.logp.data[t] = logp;
  }
  Args positive = a;
  S n(0);
  if (a.normaliser) {
    n = abs(a.normaliser.data[0]);
    positive.normaliser = view(static_cast<const S*>(&n), 1);
  }
  write_results(positive, rows);
}

template <class P>
void forward_scale(const Forward<P>& a, DType type) {
  losses_scale(a, TokensNear<typename P::Elem>(a, type));
}

// dlogits_i = c (onehot - p)_i / tau, where p and c follow the logits, and c is off by more.
template <class P>
void forward_backward_scale(const ForwardBackward<P>& a, DType type) {
  using std::abs;
  using S = typename P::Elem;
  const TokensNear<S> near(a, type);
  losses_scale(a, near);
  const Rows<S> z = linear_head::logits(a), z_scale = linear_head::logits_scale(layer_of(a));
  Rows<S> d = Rows<S>::Zero(z.rows(), z.cols());
  for (const auto& [t, token, is_doubtful] : near.rows) {
    const S tau = S(a.temperature), g = abs(factor_of(a, t)), c = g * abs(token.slope);
    const S lse = near.of.lse[t], logp = near.of.logp[t];
    const Row<S> x = z.row(t) / tau;
    const S lse_scale = cross_entropy::lse_scale<S>(x, lse);
    const auto row = linear_log_prob::sensitivity<S>(z.row(t), a.target.data[t], a.temperature);
    const Row<S> e = row.logp.abs(), p = row.lse;  // both over tau
    // Off by the roundings of c itself, of logp on these logits, or by all of the jump.
    S off = g * (token.slope_scale + abs(token.slope_moves) * (lse_scale + abs(logp)));
    if (is_doubtful) off += g * S(kAnything) * token.jump;
    d.row(t) = e * (off + c) + c * log_prob::probability_scale<S>(x, lse) / tau +
               c * p * lse_scale + c * p * (z_scale.row(t) + (row.p * z_scale.row(t)).sum()) / tau +
               g * abs(token.slope_moves) * e * (e * z_scale.row(t)).sum();
  }
  linear_head::write_gradients_scale(layer_of(a), gradients_of(a), d);
}

// ---- S2 -----------------------------------------------------------------------------------------

// A logit is stored as z_j (1 + delta_j), for z_j see rounded_sizes(), and an entry of dlogits D_i
// as D_i (1 + epsilon_i); S2 is the 2-norm of the factors of the deltas and epsilons. With p and
// e = onehot - p, both over tau, logp moves by e_j, and dlogits by
//   hessian = c' e e^T - c (diag(p) / tau - p p^T),  c' = dc / dlogp.
template <class Args, class S>
void losses_intermediate(const Args& a, const TokensNear<S>& near) {
  using std::abs;
  using std::sqrt;
  const Rows<S> z = linear_head::logits(a);
  const linear_head::Stored<S> stored_logits(layer_of(a), z);
  const RowGroups groups = row_groups(stored_logits.finite);
  linear_head::MovedResult<S> loss(z.rows()), kl(z.rows()), entropy(z.rows());
  if (a.logp) array(a.logp).setZero();
  for (const auto& [t, token, is_doubtful] : near.rows) {
    const auto of = linear_log_prob::sensitivity<S>(z.row(t), a.target.data[t], a.temperature);
    const auto depend = stored_logits.dependence(t);
    const Row<S> size = stored_logits.sizes.row(t), of_logp = of.logp * size;
    loss.put(t, given<S>(a.weight, t, 1) * token.loss_moves * of_logp, depend);
    kl.put(t, token.kl_moves * of_logp, depend);
    entropy.put(t, of.entropy * size, depend);
    entropy.more[t] = linear_head::second_order<S>(of.p, size / S(double(a.temperature)));
    if (a.logp) a.logp.data[t] = sqrt(squared_norm<S>(of_logp, depend));
  }
  const bool is_sum = a.reduction != Reduction::kNone;
  const S share = abs(share_of(a));
  linear_head::write_moved(a.loss, loss, is_sum, share, groups);
  linear_head::write_moved(a.kl, kl, is_sum, share, groups);
  linear_head::write_moved(a.entropy, entropy, is_sum, share, groups);
  if (a.clipped) array(a.clipped).setZero();
}

template <class P>
void forward_intermediate(const Forward<P>& a, DType type) {
  losses_intermediate(a, TokensNear<typename P::Elem>(a, type));
}

template <class P>
void forward_backward_intermediate(const ForwardBackward<P>& a, DType type) {
  using std::abs;
  using std::sqrt;
  using S = typename P::Elem;
  const TokensNear<S> near(a, type);
  losses_intermediate(a, near);
  const Rows<S> w = array(a.w);  // [V, H]
  const Rows<S> z = linear_head::logits(a);
  const linear_head::Stored<S> stored_logits(layer_of(a), z);
  linear_head::Moved<S> moved(z.rows(), z.cols(), w.cols());
  for (const auto& [t, token, is_doubtful] : near.rows) {
    const auto of = linear_log_prob::sensitivity<S>(z.row(t), a.target.data[t], a.temperature);
    const auto depend = stored_logits.dependence(t);
    const S g = factor_of(a, t), c = g * token.slope, moves = g * token.slope_moves;
    const Row<S> e = of.logp, p = of.lse, size = stored_logits.sizes.row(t).abs();
    const Row<S> stored = (c * e).abs();
    moved.stored.row(t) = stored;
    const auto norm = [&](const Row<S>& v) { return S(sqrt(squared_norm<S>(v * size, depend))); };
    // By the triangle inequality.
    const Row<S> by_logits =
        abs(c) * p * (size / S(a.temperature) + norm(p)) + abs(moves) * e.abs() * norm(e);
    moved.d_squares.row(t) = stored.square() + by_logits.square();
    moved.d_sums.row(t) = stored + abs(c) * p * (size / S(a.temperature) + (p * size).sum()) +
                          abs(moves) * e.abs() * (e.abs() * size).sum();
    if (!linear_head::has_dx(a)) continue;
    // Apart, too: with two classes they can cancel, and then the second order shows.
    const Rows<S> curvature =
        times<S>(c * p.transpose(), times<S>(p, w)) - scaled_rows<S>(w, c * p / S(a.temperature));
    const Row<S> by_p = squared_norms<S>(scaled_rows<S>(curvature, size), depend).sqrt();
    const Row<S> by_slope = abs(moves) * norm(e) * times<S>(e, w).abs();
    moved.dx_squares.row(t) = squared_norms<S>(scaled_rows<S>(w, stored), Dependence<S>(stored)) +
                              (by_p + by_slope).square();
  }
  linear_head::write_gradients_intermediate(layer_of(a), gradients_of(a), moved,
                                            stored_logits.finite);
}

}  // namespace tigon::reference::linear_policy
