// SPDX-License-Identifier: Apache-2.0
// Oracle of linear_divergence in plain Eigen: divergence's oracle on the logits of both layers. S
// is divergence's own and what the roundings of a logit's sum move, S2 the effect of storing both
// layers' logits and the student's gradient in the element type, as that of linear_log_prob.
//
// With q and p the probabilities of student and teacher, m their mixture, K = sum q log(q / m),
// J = sum p log(p / m), and tau = 1, a result moves with logits x of the student and y of the
// teacher by
//   forward_kl  dloss/dx = q - p                    dloss/dy = p (log(p / q) - loss)
//   reverse_kl  dloss/dx = q (log(q / p) - loss)    dloss/dy = p - q
//   jsd         dloss/dx = (1 - beta) q (log(q / m) - K)
//               dloss/dy = beta p (log(p / m) - J)
// and slope, which is the loss of reverse_kl and (1 - beta) K of jsd, by
//   dslope/dx = (1 - beta) (q (log(q / m) - K) - (1 - beta) q (q / m - sum q^2 / m))
//   dslope/dy = -(1 - beta) beta p (q / m - sum q p / m)
#pragma once
#include <cmath>
#include <limits>

#include "kernels/linear_divergence/linear_divergence.h"
#include "reference/divergence.h"
#include "reference/linear_head.h"

namespace tigon::reference::linear_divergence {

using linear_head::breaks_promise;
using linear_head::finite_part;
using linear_head::gradients_of;
using linear_head::Layer;
using linear_head::layer_of;
using linear_head::rounded_sizes;
using tigon::linear_divergence::Backward;
using tigon::linear_divergence::Forward;
using Kind = tigon::divergence::Kind;

template <class Args>
auto teacher_of(const Args& a) {
  return Layer<typename Args::Elem>{a.teacher_x, a.teacher_w, a.teacher_bias};
}

// The logits of both layers [T, V].
template <class S>
struct Logits {
  Rows<S> student, teacher;
};
template <class Args>
auto logits_of(const Args& a) {
  return Logits<typename Args::Elem>{linear_head::logits(layer_of(a)),
                                     linear_head::logits(teacher_of(a))};
}

// The call of divergence on these logits.
template <class Call, class Args, class S>
Call on_logits(const Args& a, const Logits<S>& z) {
  Call c;
  static_cast<tigon::divergence::Options&>(c) = a;
  c.logits = view(z.student.data(), z.student.rows(), z.student.cols());
  c.teacher = view(z.teacher.data(), z.teacher.rows(), z.teacher.cols());
  c.target = a.target;
  c.lse = a.lse;
  c.teacher_lse = a.teacher_lse;
  c.slope = a.slope;
  return c;
}
template <class P>
auto on_logits(const Forward<P>& a, const Logits<typename P::Elem>& z) {
  auto call = on_logits<tigon::divergence::Forward<P>>(a, z);
  call.loss = a.loss;
  return call;
}
// With its gradient in `d`.
template <class P>
auto on_logits(const Backward<P>& a, const Logits<typename P::Elem>& z, Rows<typename P::Elem>& d) {
  auto call = on_logits<tigon::divergence::Backward<P>>(a, z);
  call.dloss = a.dloss;
  call.dlogits = view(d.data(), d.rows(), d.cols());
  return call;
}

template <class P>
void forward(const Forward<P>& a) {
  using S = typename P::Elem;
  if (breaks_promise(a)) {
    for (const auto& out : {a.loss, a.lse, a.teacher_lse, a.slope})
      array(out).setConstant(S(std::numeric_limits<double>::quiet_NaN()));
    return;
  }
  divergence::forward(on_logits(a, logits_of(a)));
}

// dlogits [T, V].
template <class P>
Rows<typename P::Elem> logits_gradient(const Backward<P>& a, const Logits<typename P::Elem>& z) {
  Rows<typename P::Elem> d(z.student.rows(), z.student.cols());
  divergence::backward(on_logits(a, z, d));
  return d;
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  if (breaks_promise(a))
    return linear_head::fill_gradients(gradients_of(a),
                                       S(std::numeric_limits<double>::quiet_NaN()));
  linear_head::write_gradients(a, logits_gradient(a, logits_of(a)));
}

// ---- how the results of a row follow its logits -------------------------------------------------

// A row of both, with what the derivatives above are made of. What has no probability moves
// nothing.
template <class S>
struct Probabilities {
  Row<S> q, p, c_q, c_p;  // c: log(q / m) and log(p / m), or log(q / p) and log(p / q)
  Row<S> q_in_m, p_in_m;  // q / m and p / m

  explicit Probabilities(const divergence::Pair<S>& r) {
    using std::exp;
    const int64_t n = r.x.size();
    const bool mixed = r.kind == Kind::kJsd;
    q = p = c_q = c_p = q_in_m = p_in_m = Row<S>::Zero(n);
    for (int64_t v = 0; v < n; ++v) {
      q[v] = r.q(v);
      p[v] = r.p(v);
      const S of_q = mixed ? r.log_q_in_mixture(v) : S(-r.log_ratio(v));
      const S of_p = mixed ? r.log_p_in_mixture(v) : S(r.log_ratio(v));
      if (q[v] != S(0)) c_q[v] = finite(of_q);
      if (p[v] != S(0)) c_p[v] = finite(of_p);
      if (!mixed) continue;
      if (q[v] != S(0)) q_in_m[v] = exp(of_q);
      if (p[v] != S(0)) p_in_m[v] = exp(of_p);
    }
  }

 private:
  static S finite(const S& x) {
    using std::abs;
    return abs(x) < S(std::numeric_limits<float>::max()) ? x : S(0);
  }
};

// To first order, a change of the logits moves each result by its gradient . that change.
template <class S>
struct Sensitivity {
  Row<S> lse, teacher_lse;  // by the student's, and by the teacher's
  Row<S> loss_x, loss_y, slope_x, slope_y;
};

template <class S>
Sensitivity<S> sensitivity(const divergence::Pair<S>& r, double temperature) {
  const Probabilities<S> of(r);
  const S inverse(1 / temperature), b(r.beta), rest(1 - r.beta);
  const Row<S> zero = Row<S>::Zero(of.q.size());
  const Row<S> by_q = of.q * (of.c_q - (of.q * of.c_q).sum());
  const Row<S> by_p = of.p * (of.c_p - (of.p * of.c_p).sum());
  Sensitivity<S> s{of.q * inverse, of.p * inverse, zero, zero, zero, zero};
  if (r.kind == Kind::kForwardKl) {
    s.loss_x = (of.q - of.p) * inverse;
    s.loss_y = by_p * inverse;
  } else if (r.kind == Kind::kReverseKl) {
    s.loss_x = s.slope_x = by_q * inverse;
    s.loss_y = s.slope_y = (of.p - of.q) * inverse;
  } else {
    s.loss_x = rest * by_q * inverse;
    s.loss_y = b * by_p * inverse;
    const S same = (of.q * of.q_in_m).sum(), other = (of.p * of.q_in_m).sum();
    s.slope_x = rest * (by_q - rest * of.q * (of.q_in_m - same)) * inverse;
    s.slope_y = -rest * b * of.p * (of.q_in_m - other) * inverse;
  }
  return s;
}

// How entry i of dlogits follows logit i of student and teacher, in absolute value; it follows none
// of the others, because the sums of the row are given.
template <class S>
struct GradientSlope {
  Row<S> x, y;
};
template <class P>
auto gradient_slope(const Backward<P>& a, const divergence::Pair<typename P::Elem>& r, int64_t t) {
  using S = typename P::Elem;
  using std::abs;
  const Probabilities<S> of(r);
  const S slope = divergence::below_infinity(a.slope.data[t]);
  const S scale(abs(a.dloss.data[t]) / (S(a.temperature) * S(a.temperature)));
  if (r.kind == Kind::kForwardKl) return GradientSlope<S>{of.q * scale, of.p * scale};
  if (r.kind == Kind::kReverseKl)
    return GradientSlope<S>{scale * of.q * (of.c_q.abs() + slope + S(1)), scale * of.q};
  const S b(r.beta), rest(1 - r.beta);
  const Row<S> by_ratio = rest * b * of.p_in_m;
  return GradientSlope<S>{scale * of.q * (rest * of.c_q.abs() + slope + by_ratio),
                          scale * of.q * by_ratio};
}

// ---- S ------------------------------------------------------------------------------------------

// Beside divergence's own S: a logit is off by the roundings of its sum.
template <class P>
void forward_scale(const Forward<P>& a) {
  using S = typename P::Elem;
  const auto z = logits_of(a);
  const Rows<S> x_scale = linear_head::logits_scale(layer_of(a)),
                y_scale = linear_head::logits_scale(teacher_of(a));
  const auto call = on_logits(a, z);
  divergence::forward_scale(call);
  for (int64_t t = 0; t < z.student.rows(); ++t) {
    if (divergence::is_ignored(a, t)) continue;
    const auto of = sensitivity(divergence::summed_pair(call, t), a.temperature);
    const auto moved = [&](const Row<S>& by, const Rows<S>& scale) {
      return S((by.abs() * scale.row(t)).sum());
    };
    a.lse.data[t] += moved(of.lse, x_scale);
    a.teacher_lse.data[t] += moved(of.teacher_lse, y_scale);
    a.loss.data[t] += moved(of.loss_x, x_scale) + moved(of.loss_y, y_scale);
    a.slope.data[t] += moved(of.slope_x, x_scale) + moved(of.slope_y, y_scale);
  }
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  const auto z = logits_of(a);
  const Rows<S> x_scale = linear_head::logits_scale(layer_of(a)),
                y_scale = linear_head::logits_scale(teacher_of(a));
  Rows<S> d(z.student.rows(), z.student.cols());  // S of dlogits
  const auto call = on_logits(a, z, d);
  divergence::backward_scale(call);
  for (int64_t t = 0; t < d.rows(); ++t) {
    if (divergence::is_ignored(a, t)) continue;
    const auto by = gradient_slope(a, divergence::saved_pair(call, t), t);
    d.row(t) += by.x * x_scale.row(t) + by.y * y_scale.row(t);
  }
  linear_head::write_gradients_scale(layer_of(a), gradients_of(a), d);
}

// ---- S2 -----------------------------------------------------------------------------------------

// How the roundings of the stored logits of one layer move results.
template <class S>
struct Stored : linear_head::Stored<S> {
  using linear_head::Stored<S>::Stored, linear_head::Stored<S>::sizes;

  // The square of how a result moves with these factors of a row's logits.
  S square(int64_t t, const Row<S>& by, const Dependence<S>& of) const {
    return squared_norm<S>(by * sizes.row(t), of);
  }
  // Near its least value a divergence moves by the square of a change.
  S second_order(int64_t t, const Row<S>& probabilities, double temperature) const {
    return linear_head::second_order<S>(probabilities, sizes.row(t) / S(temperature));
  }
};

template <class P>
void forward_intermediate(const Forward<P>& a) {
  using std::sqrt;
  using S = typename P::Elem;
  const auto z = logits_of(a);
  const Stored<S> student(layer_of(a), z.student), teacher(teacher_of(a), z.teacher);
  const auto call = on_logits(a, z);
  for (const auto& out : {a.loss, a.lse, a.teacher_lse, a.slope}) array(out).setZero();
  for (int64_t t = 0; t < z.student.rows(); ++t) {
    if (divergence::is_ignored(a, t)) continue;
    const auto pair = divergence::summed_pair(call, t);
    const auto of = sensitivity(pair, a.temperature);
    const Probabilities<S> probabilities(pair);
    const S more = student.second_order(t, probabilities.q, a.temperature) +
                   teacher.second_order(t, probabilities.p, a.temperature);
    const Dependence<S> of_x = student.dependence(t), of_y = teacher.dependence(t);
    const auto moved = [&](const Row<S>& by_x, const Row<S>& by_y) {
      return S(sqrt(student.square(t, by_x, of_x) + teacher.square(t, by_y, of_y)) + more);
    };
    a.lse.data[t] = sqrt(student.square(t, of.lse, of_x));
    a.teacher_lse.data[t] = sqrt(teacher.square(t, of.teacher_lse, of_y));
    a.loss.data[t] = moved(of.loss_x, of.loss_y);
    if (pair.kind != Kind::kForwardKl) a.slope.data[t] = moved(of.slope_x, of.slope_y);
  }
}

template <class P>
void backward_intermediate(const Backward<P>& a) {
  using S = typename P::Elem;
  const Rows<S> w = array(a.w);  // [V, H]
  const auto z = logits_of(a);
  const Stored<S> student(layer_of(a), z.student), teacher(teacher_of(a), z.teacher);
  Rows<S> d = logits_gradient(a, z);
  const auto call = on_logits(a, z, d);
  linear_head::Moved<S> moved(d.rows(), d.cols(), w.cols());
  for (int64_t t = 0; t < d.rows(); ++t) {
    if (divergence::is_ignored(a, t)) continue;
    const Row<S> stored = d.row(t).abs();
    moved.stored.row(t) = stored;
    moved.d_squares.row(t) = stored.square();
    moved.d_sums.row(t) = stored;
    const auto to_dx = [&](const Row<S>& factors, const Dependence<S>& of) {
      return squared_norms<S>(scaled_rows<S>(w, factors), of);
    };
    if (linear_head::has_dx(a)) moved.dx_squares.row(t) = to_dx(stored, Dependence<S>(stored));
    const auto add = [&](const Stored<S>& layer, const Row<S>& by) {
      const Dependence<S> depend = layer.dependence(t);
      // With one delta for all logits of a row, a mean over the columns of dw averages nothing:
      // twice its bound.
      const Row<S> by_logit = S(depend.alike ? 2 : 1) * by * layer.sizes.row(t);
      moved.d_squares.row(t) += by_logit.square();
      moved.d_sums.row(t) += by_logit;
      if (linear_head::has_dx(a)) moved.dx_squares.row(t) += to_dx(by_logit, depend);
    };
    const auto by = gradient_slope(a, divergence::saved_pair(call, t), t);
    add(student, by.x);
    add(teacher, by.y);
  }
  linear_head::write_gradients_intermediate(layer_of(a), gradients_of(a), moved, student.finite);
}

}  // namespace tigon::reference::linear_divergence
