// SPDX-License-Identifier: Apache-2.0
// Oracle of divergence in plain Eigen, and S: what the roundings of the formulas are measured by.
// Names are those of kernels/divergence/divergence.h; z is a row of logits divided by the
// temperature.
#pragma once
#include "kernels/divergence/divergence.h"
#include "reference/log_prob.h"

namespace tigon::reference::divergence {

using cross_entropy::few_roundings;
using cross_entropy::finite_abs;
using cross_entropy::largest;
using tigon::divergence::Backward;
using tigon::divergence::Forward;
using tigon::divergence::Kind;

// At its ends jsd is one of the others.
template <class Args>
Kind kind_of(const Args& a) {
  if (a.kind != Kind::kJsd) return a.kind;
  return a.beta == 0 ? Kind::kForwardKl : a.beta == 1 ? Kind::kReverseKl : Kind::kJsd;
}

template <class Args>
bool is_ignored(const Args& a, int64_t t) {
  return a.target && a.target.data[t] == a.ignore_index;
}

// One row of both, with their log-sum-exps.
template <class S>
struct Pair {
  Kind kind;
  double beta;
  Row<S> x, y;  // z of student and teacher
  S lse, teacher_lse;

  S log_q(int64_t v) const { return clamped(x[v] - lse); }
  S log_p(int64_t v) const { return clamped(y[v] - teacher_lse); }
  S q(int64_t v) const { return exp_of(log_q(v)); }
  S p(int64_t v) const { return exp_of(log_p(v)); }
  S log_ratio(int64_t v) const { return log_p(v) - log_q(v); }  // log(p / q)

  // log(q / m) and log(p / m); the power is that of a number below 0.
  S log_q_in_mixture(int64_t v) const {
    using std::exp, std::log;
    const S d = log_ratio(v);
    return d > S(0) ? S(log_p_in_mixture(v) - d) : S(-log(S(beta) * exp(d) + S(1 - beta)));
  }
  S log_p_in_mixture(int64_t v) const {
    using std::exp, std::log;
    const S d = log_ratio(v);
    return d > S(0) ? S(-log(S(beta) + S(1 - beta) * exp(-d))) : S(log_q_in_mixture(v) + d);
  }
  // c_v of the gradient.
  S slope_of(int64_t v) const {
    if (kind == Kind::kForwardKl) return S(0);
    return kind == Kind::kReverseKl ? S(-log_ratio(v)) : S(S(1 - beta) * log_q_in_mixture(v));
  }

 private:
  // A saved lse's rounding must not make a probability more than 1.
  static S clamped(const S& log_p) { return log_p > S(0) ? S(0) : log_p; }
  static S exp_of(const S& x) {
    using std::exp;
    return exp(x);
  }
};

template <class Args>
auto pair_of(const Args& a, int64_t t) {
  using S = typename Args::Elem;
  const S tau(a.temperature);
  return Pair<S>{
      kind_of(a), double(a.beta), array(a.logits).row(t) / tau, array(a.teacher).row(t) / tau, S(0),
      S(0)};
}
template <class Args>
auto summed_pair(const Args& a, int64_t t) {
  auto pair = pair_of(a, t);
  pair.lse = cross_entropy::log_sum_exp(pair.x);
  pair.teacher_lse = cross_entropy::log_sum_exp(pair.y);
  return pair;
}
template <class Args>
auto saved_pair(const Args& a, int64_t t) {
  auto pair = pair_of(a, t);
  pair.lse = a.lse.data[t];
  pair.teacher_lse = a.teacher_lse.data[t];
  return pair;
}

// p x, 0 where there is no p.
template <class S>
S part(const S& p, const S& x) {
  return p == S(0) ? S(0) : S(p * x);
}

template <class S>
S loss_term(const Pair<S>& r, int64_t v) {
  switch (r.kind) {
    case Kind::kForwardKl:
      return part(r.p(v), r.log_ratio(v));
    case Kind::kReverseKl:
      return part(r.q(v), S(-r.log_ratio(v)));
    default:
      return S(r.beta) * part(r.p(v), r.log_p_in_mixture(v)) +
             S(1 - r.beta) * part(r.q(v), r.log_q_in_mixture(v));
  }
}

template <class P>
void write_row(const Forward<P>& a, int64_t t, const typename P::Elem& loss,
               const typename P::Elem& lse, const typename P::Elem& teacher_lse,
               const typename P::Elem& slope) {
  a.loss.data[t] = loss;
  a.lse.data[t] = lse;
  a.teacher_lse.data[t] = teacher_lse;
  a.slope.data[t] = slope;
}

template <class P>
void forward(const Forward<P>& a) {
  using S = typename P::Elem;
  for (int64_t t = 0; t < a.logits.shape[0]; ++t) {
    if (is_ignored(a, t)) {
      write_row(a, t, S(0), S(0), S(0), S(0));
      continue;
    }
    const Pair<S> r = summed_pair(a, t);
    S loss(0), slope(0);
    for (int64_t v = 0; v < r.x.size(); ++v) {
      loss += loss_term(r, v);
      if (r.kind != Kind::kForwardKl) slope += part(r.q(v), r.slope_of(v));
    }
    write_row(a, t, loss, r.lse, r.teacher_lse, slope);
  }
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  for (int64_t t = 0; t < a.logits.shape[0]; ++t) {
    auto dx = array(a.dlogits).row(t);
    if (is_ignored(a, t)) {
      dx.setZero();
      continue;
    }
    const Pair<S> r = saved_pair(a, t);
    const S g = a.dloss.data[t] / S(a.temperature);
    for (int64_t v = 0; v < r.x.size(); ++v)
      dx[v] = g * (r.kind == Kind::kForwardKl ? S(r.q(v) - r.p(v))
                                              : part(r.q(v), S(r.slope_of(v) - a.slope.data[t])));
  }
}

// ---- S ------------------------------------------------------------------------------------------

// What log(q / m) and log(p / m) are off by beside their ratio's error, in roundings: those of the
// power, of the mixture, of the logarithm, and of the sum with a ratio of up to 80.
template <class S>
S mixture_roundings(const Pair<S>& r, int64_t v) {
  using std::abs;
  const S d = abs(r.log_ratio(v));
  return S(8) + S(2) * (d > S(80) || d != d ? S(80) : d);
}

// The loss and the slope: two sums over V each, of terms whose logarithms are off by the errors of
// both log-sum-exps and by the roundings of exponents.
template <class P>
void forward_scale(const Forward<P>& a) {
  using S = typename P::Elem;
  using std::abs, std::sqrt;
  for (int64_t t = 0; t < a.logits.shape[0]; ++t) {
    if (is_ignored(a, t)) {
      write_row(a, t, S(0), S(0), S(0), S(0));
      continue;
    }
    const Pair<S> r = summed_pair(a, t);
    const int64_t columns = r.x.size();
    const S of_lse = cross_entropy::lse_scale(r.x, r.lse),
            of_teacher = cross_entropy::lse_scale(r.y, r.teacher_lse);
    const Row<S> x = finite_abs(r.x), y = finite_abs(r.y);
    S loss(0x1p-100), slope(0x1p-100);
    for (int64_t v = 0; v < columns; ++v) {
      const S q = r.q(v), p = r.p(v);
      const S e_q = of_lse + few_roundings(S(S(2) * (x[v] + abs(r.lse))), columns);
      const S e_p = of_teacher + few_roundings(S(S(2) * (y[v] + abs(r.teacher_lse))), columns);
      const S mixture =
          r.kind == Kind::kJsd ? few_roundings(mixture_roundings(r, v), columns) : S(0);
      const S ratio = sqrt(e_q * e_q + e_p * e_p);  // errors of two rows
      const auto term = [&](const S& probability, const S& relative, const S& log_ratio) {
        return part(probability, S((S(1) + relative) * abs(log_ratio) + ratio + mixture));
      };
      if (r.kind == Kind::kForwardKl) {
        loss += term(p, e_p, r.log_ratio(v));
        continue;
      }
      const S of_student = term(q, e_q, r.slope_of(v));
      slope += of_student;
      loss += of_student;
      if (r.kind == Kind::kJsd) loss += S(r.beta) * term(p, e_p, r.log_p_in_mixture(v));
    }
    write_row(a, t, loss, of_lse, of_teacher, slope);
  }
}

// Roundings of exponents, as log_prob's probability_scale() has them: in units of 28 u.
template <class S>
Row<S> exponent_scale(const Row<S>& z, const S& lse) {
  using std::abs;
  return (S(4.25) * finite_abs(z) + S(2.25) * S(abs(lse))) / S(28);
}

// |c|; 0 where float has an infinity, which times a probability is infinite, or 0 for none.
template <class S>
S below_infinity(const S& c) {
  using std::abs;
  return abs(c) < S(1e30) ? S(abs(c)) : S(0);
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  using std::abs;
  for (int64_t t = 0; t < a.logits.shape[0]; ++t) {
    auto dx = array(a.dlogits).row(t);
    if (is_ignored(a, t)) {
      dx.setZero();
      continue;
    }
    const Pair<S> r = saved_pair(a, t);
    const S g = abs(a.dloss.data[t]) / S(a.temperature), slope = below_infinity(a.slope.data[t]);
    const Row<S> q = log_prob::probability_scale(r.x, r.lse),
                 p = log_prob::probability_scale(r.y, r.teacher_lse),
                 e = exponent_scale(r.x, r.lse) + exponent_scale(r.y, r.teacher_lse);
    for (int64_t v = 0; v < r.x.size(); ++v) {
      if (r.kind == Kind::kForwardKl) {
        dx[v] = g * (q[v] + p[v]);
        continue;
      }
      const S mixture = r.kind == Kind::kJsd ? S(mixture_roundings(r, v) / S(28)) : S(0);
      dx[v] = g * q[v] * (below_infinity(r.slope_of(v)) + slope + e[v] + mixture);
    }
  }
}

}  // namespace tigon::reference::divergence
