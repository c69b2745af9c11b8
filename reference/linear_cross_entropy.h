// SPDX-License-Identifier: Apache-2.0
// Oracle of linear_cross_entropy in plain Eigen: cross_entropy's oracle on z = x w^T + bias. S is
// the same formulas with every term replaced by its absolute value, S2 the effect of storing logits
// and their gradient in the element type.
//
// A budget's n is the length of all sums on the path: H + V for loss, lse and dx, H + V + T for dw
// and dbias; its c0 is 24 as for cross_entropy, its k_int 1 for all.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "reference/cross_entropy_scale.h"
#include "reference/linear_head.h"
#include "reference/rounded_alike.h"

namespace tigon::reference::linear_cross_entropy {

using linear_head::breaks_promise;
using linear_head::finite_part;
using linear_head::gradients_of;
using linear_head::layer_of;
using linear_head::logits;
using linear_head::logits_scale;
using linear_head::rounded_sizes;
using linear_head::second_order;
using tigon::linear_cross_entropy::Forward;
using tigon::linear_cross_entropy::ForwardBackward;

template <class Args>
void fill_nan(const Args& a) {
  const typename Args::Elem nan(std::numeric_limits<double>::quiet_NaN());
  for (const auto& out : {a.loss, a.lse, a.z_part, a.accuracy, a.entropy})
    if (out) array(out).setConstant(nan);
  if constexpr (requires { a.dw; }) linear_head::fill_gradients(gradients_of(a), nan);
}

template <class P>
void forward(const Forward<P>& a) {
  if (breaks_promise(a)) return fill_nan(a);
  using S = typename P::Elem;
  const Rows<S> z = logits(a);
  cross_entropy::Forward<P> f;
  cross_entropy::take_extras(a, &f);
  f.logits = view(z.data(), z.rows(), z.cols());
  f.target = a.target;
  f.loss = a.loss;
  f.lse = a.lse;
  cross_entropy::forward(f);
}

// Fills loss and lse; returns dlogits [T, V].
template <class P>
Rows<typename P::Elem> logits_gradient(const ForwardBackward<P>& a) {
  using S = typename P::Elem;
  Rows<S> z = logits(a);
  cross_entropy::ForwardBackward<P> f;
  cross_entropy::take_extras(a, &f);
  f.logits = view(z.data(), z.rows(), z.cols());
  f.target = a.target;
  f.dloss = a.dloss;
  f.loss = a.loss;
  f.lse = a.lse;
  cross_entropy::forward_backward(f);
  return z;
}

template <class P>
void forward_backward(const ForwardBackward<P>& a) {
  if (breaks_promise(a)) return fill_nan(a);
  linear_head::write_gradients(a, logits_gradient(a));
}

// ---- how one row's loss, lse and gradient follow its logits -------------------------------------

// To first order, a change dz of the logits moves the loss by gradient . dz, lse and the entropy by
// theirs . dz and the gradient by hessian dz, with hessian = diag(d) + c v v^T.
template <class S>
struct Sensitivity {
  S lse;
  Row<S> gradient, lse_gradient, entropy_gradient;
  Row<S> d, v;
  S c;

  Row<S> hessian_diagonal() const { return d + c * v.square(); }
};

// With s and s' the first and second derivative of the softcap, k = 1 + 2 z_loss lse (with class
// weights cross_entropy's probability_factor) and e = k p - q the gradient in x: gradient = s e, so
// d/dz_j of entry i is [i = j] (s_i^2 k p_i + s'_i e_i) + s_i p_i (2 z_loss - k) p_j s_j.
template <class S>
Sensitivity<S> sensitivity(const Row<S>& z, int64_t y, const LossOptions& o,
                           const cross_entropy::Weighting<S>& w) {
  LossOptions uncapped = o;
  uncapped.softcap = 0;
  const Row<S> x = cross_entropy::softcapped(z, o.softcap);
  const Row<S> s = cross_entropy::softcap_slope(z, o.softcap);
  const S lse = cross_entropy::log_sum_exp(x);
  const S k = cross_entropy::probability_factor(lse, y, o, w);
  const Row<S> p = cross_entropy::probabilities(x, lse);
  const Row<S> e = cross_entropy::row_gradient(x, lse, y, uncapped, w);
  const S entropy = cross_entropy::row_entropy(x, lse);
  const Row<S> surprise = (p == S(0)).select(Row<S>::Zero(p.size()), p * (lse - x - entropy));
  Sensitivity<S> r{lse, s * e, s * p, s * surprise, s.square() * k * p, s * p, S(2) * w.z_loss - k};
  if (o.softcap > 0) r.d -= S(2) * x / S(double(o.softcap) * o.softcap) * s * e;
  return r;
}

// ---- S ------------------------------------------------------------------------------------------

// The accuracy's S where rounding the logits may change it: then any accuracy is right.
inline constexpr double kDoubtful = 0x1p22;
inline constexpr double kStep = 0x1p-7;        // of bf16, the largest, relative to a value
inline constexpr double kLeastStep = 0x1p-24;  // of f16, the largest

template <class S>
bool is_doubtful(const Row<S>& z, const Row<S>& z_scale, int64_t y) {
  using std::abs;
  if (!cross_entropy::is_class(y, z.size())) return false;
  for (int64_t i = 0; i < z.size(); ++i) {
    const S size =
        S(kStep) * (abs(z[i]) + abs(z[y])) + S(0x1p-12) * (z_scale[i] + z_scale[y]) + S(kLeastStep);
    if (i != y && abs(z[i] - z[y]) <= size) return true;
  }
  return false;
}

// Beside cross_entropy's own S: a logit is off by the roundings of its sum.
template <class Args>
void loss_scale(const Args& a) {
  using S = typename Args::Elem;
  const Rows<S> z = logits(a), z_scale = logits_scale(layer_of(a));
  using std::abs;
  const auto w = cross_entropy::weighting(a, z.cols());
  const S share = cross_entropy::rows_share<S>(a, z.cols());
  cross_entropy::RowResults<S> rows(z.rows());
  array(a.lse).setZero();
  for (int64_t t = 0; t < z.rows(); ++t) {
    const int64_t y = a.target.data[t];
    if (y == a.ignore_index) continue;
    const Row<S> x = cross_entropy::softcapped<S>(z.row(t), a.softcap);
    const auto of = sensitivity<S>(z.row(t), y, a, w);
    a.lse.data[t] = cross_entropy::lse_scale(x, of.lse) + (of.lse_gradient * z_scale.row(t)).sum();
    rows.loss[t] = cross_entropy::row_loss_scale(x, of.lse, y, a, w) +
                   (of.gradient.abs() * z_scale.row(t)).sum() +
                   share * abs(cross_entropy::row_loss(x, of.lse, y, a, w));
    rows.z_part[t] = cross_entropy::z_part_scale(of.lse, a.lse.data[t], a, z.cols()) +
                     share * abs(S(a.z_loss) * of.lse * of.lse);
    rows.accuracy[t] = is_doubtful<S>(z.row(t), z_scale.row(t), y) ? kDoubtful : 1;
    rows.entropy[t] = cross_entropy::row_entropy_scale(x, of.lse) +
                      (of.entropy_gradient.abs() * z_scale.row(t)).sum() +
                      share * abs(cross_entropy::row_entropy(x, of.lse));
  }
  cross_entropy::write_results(a, rows, w);
}

template <class P>
void forward_scale(const Forward<P>& a) {
  loss_scale(a);
}

// How an implementation has the logits and lse that it makes the gradient of.
enum class Logits {
  kOnce,   // those that the loss is made of
  kTwice,  // logits that are computed and rounded again, and lse from memory: in the gradient's two
           // terms, that of a probability and that of lse, roundings no longer belong together
};

template <class P>
void forward_backward_scale(const ForwardBackward<P>& a, Logits computed = Logits::kOnce) {
  using std::abs;
  using S = typename P::Elem;
  loss_scale(a);
  const Rows<S> z = logits(a), z_scale = logits_scale(layer_of(a));
  const auto w = cross_entropy::weighting(a, z.cols());
  const Row<S> g = cross_entropy::upstream(a, w).abs();
  Rows<S> d = Rows<S>::Zero(z.rows(), z.cols());  // S of dlogits
  for (int64_t t = 0; t < z.rows(); ++t) {
    const int64_t y = a.target.data[t];
    if (y == a.ignore_index) continue;
    const auto of = sensitivity<S>(z.row(t), y, a, w);
    const Row<S> vz = of.v * z_scale.row(t), diagonal = of.hessian_diagonal().abs();
    const Row<S> others = S(abs(of.c)) * of.v * (vz.sum() - vz);
    d.row(t) = g[t] * (cross_entropy::row_gradient_scale<S>(z.row(t), of.lse, y, a, w) +
                       diagonal * z_scale.row(t) + others);
    if (computed == Logits::kTwice) d.row(t) += g[t] * abs(of.c) * of.v * abs(of.lse);
  }
  linear_head::write_gradients_scale(layer_of(a), gradients_of(a), d);
}

// ---- S2 -----------------------------------------------------------------------------------------

// A logit is stored as z_j (1 + delta_j), for z_j see rounded_sizes(), and an entry of dlogits D_i
// as D_i (1 + epsilon_i), all deltas and epsilons independent and at most the element type's
// roundoff. So
//   loss moves by  sum_j gradient_j z_j delta_j,
//   lse by         sum_j lse_gradient_j z_j delta_j,
//   D_i by         D_i epsilon_i + sum_j hessian_ij z_j delta_j,
//   dx_h by        sum_i w_ih D_i epsilon_i + sum_j (sum_i w_ih hessian_ij) z_j delta_j,
//   dw_ih by       sum_t x_th (change of D_ti), whose rows are independent, and dbias_i likewise,
// and S2 is the 2-norm of the factors of the deltas and epsilons.
//
// Roundings that are not independent are in rounded_alike.h.
template <class Args>
void loss_intermediate(const Args& a) {
  using std::abs;
  using std::sqrt;
  using S = typename Args::Elem;
  const Rows<S> z = logits(a);
  const linear_head::Stored<S> stored_logits(layer_of(a), z);
  const auto w = cross_entropy::weighting(a, z.cols());
  const RowGroups groups = row_groups(stored_logits.finite);
  linear_head::MovedResult<S> loss(z.rows()), z_part(z.rows()), entropy(z.rows());
  array(a.lse).setZero();
  for (int64_t t = 0; t < z.rows(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const auto of = sensitivity<S>(z.row(t), a.target.data[t], a, w);
    const Dependence<S> logits_depend = stored_logits.dependence(t);
    const Row<S> size = stored_logits.sizes.row(t), of_lse = of.lse_gradient * size;
    loss.put(t, of.gradient * size, logits_depend);
    entropy.put(t, of.entropy_gradient * size, logits_depend);
    entropy.more[t] = second_order<S>(of.lse_gradient, size);
    z_part.put(t, S(2 * a.z_loss) * of.lse * of_lse, logits_depend);
    a.lse.data[t] = sqrt(squared_norm<S>(of_lse, logits_depend));
  }
  const bool is_sum = a.reduction != Reduction::kNone;
  linear_head::write_moved(a.loss, loss, is_sum, w.share, groups);
  linear_head::write_moved(a.z_part, z_part, is_sum, w.plain_share, groups);
  linear_head::write_moved(a.entropy, entropy, is_sum, w.plain_share, groups);
  if (a.accuracy) array(a.accuracy).setZero();
}

template <class P>
void forward_intermediate(const Forward<P>& a) {
  loss_intermediate(a);
}

template <class P>
void forward_backward_intermediate(const ForwardBackward<P>& a, Logits computed = Logits::kOnce) {
  using std::abs;
  using S = typename P::Elem;
  loss_intermediate(a);
  const Rows<S> w = array(a.w);  // [V, H]
  const Rows<S> z = logits(a);
  const linear_head::Stored<S> stored_logits(layer_of(a), z);
  const Rows<S>& sizes = stored_logits.sizes;
  const auto weights = cross_entropy::weighting(a, z.cols());
  const Row<S> g = cross_entropy::upstream(a, weights);
  linear_head::Moved<S> moved(z.rows(), z.cols(), w.cols());
  for (int64_t t = 0; t < z.rows(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const auto of = sensitivity<S>(z.row(t), a.target.data[t], a, weights);
    const Row<S> stored = (g[t] * of.gradient).abs();
    moved.stored.row(t) = stored;
    const Dependence<S> logits_depend = stored_logits.dependence(t);
    const bool twice = computed == Logits::kTwice;
    if (linear_head::has_dx(a)) {
      const Row<S> vw = times<S>(of.v, w);  // [1, H]
      const Rows<S> by_p = scaled_rows<S>(w, of.d), by_lse = times<S>(of.c * of.v.transpose(), vw);
      const Rows<S> stored_w = scaled_rows<S>(w, g[t] * of.gradient);
      const auto moved_by = [&](const Rows<S>& hessian_w) {
        const Rows<S> by_logit = scaled_rows<S>(hessian_w, g[t] * sizes.row(t));
        return squared_norms<S>(by_logit, logits_depend);
      };
      moved.dx_squares.row(t) =
          squared_norms<S>(stored_w, Dependence<S>(of.lse_gradient)) +
          (twice ? Row<S>(moved_by(by_p) + moved_by(by_lse)) : Row<S>(moved_by(by_p + by_lse)));
    }
    const Row<S> vz = of.v * sizes.row(t);
    const S all = squared_norm<S>(vz, logits_depend);
    const bool has_own = twice || logits_depend.any();
    const Row<S> other_columns =
        has_own ? Row<S>(Row<S>::Constant(vz.size(), all)) : Row<S>(all - vz.square());
    const Row<S> others = (of.c * of.v).square() * other_columns;
    const Row<S> diagonal = (twice ? of.d : of.hessian_diagonal()) * sizes.row(t);
    const Row<S> sums = Row<S>::Constant(vz.size(), vz.abs().sum()) - vz.abs() * S(twice ? 0 : 1);
    moved.d_squares.row(t) = stored.square() + g[t] * g[t] * (diagonal.square() + others);
    moved.d_sums.row(t) =
        abs(g[t]) * (of.gradient.abs() + diagonal.abs() + (of.c * of.v).abs() * sums);
  }
  linear_head::write_gradients_intermediate(layer_of(a), gradients_of(a), moved,
                                            stored_logits.finite);
}

}  // namespace tigon::reference::linear_cross_entropy
