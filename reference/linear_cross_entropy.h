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
#include "reference/products.h"
#include "reference/rounded_alike.h"

namespace tigon::reference::linear_cross_entropy {

using tigon::linear_cross_entropy::Forward;
using tigon::linear_cross_entropy::ForwardBackward;

// z = x w^T + bias [T, V]
template <class Args>
auto logits(const Args& a) {
  using S = typename Args::Elem;
  Rows<S> z = times_transpose<S>(array(a.x), array(a.w));
  if (a.bias) z.rowwise() += Row<S>(array(a.bias));
  return z;
}

// More rows are not ignored than the caller has promised: every result is NaN.
template <class Args>
bool breaks_promise(const Args& a) {
  const int64_t* const first = a.target.data;
  const int64_t* const last = first + a.target.shape[0];
  return a.max_valid_rows >= 0 &&
         last - first > a.max_valid_rows + std::count(first, last, a.ignore_index);
}

template <class Args>
void fill_nan(const Args& a) {
  const typename Args::Elem nan(std::numeric_limits<double>::quiet_NaN());
  for (const auto& out : {a.loss, a.lse, a.z_part, a.accuracy, a.entropy})
    if (out) array(out).setConstant(nan);
  if constexpr (requires { a.dw; }) {
    for (const auto& out : {a.dx, a.dw, a.dw_fp32, a.dw_accum})
      if (out) array(out).setConstant(nan);
    if (a.dbias) array(a.dbias).setConstant(nan);
  }
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

// Calls f(tensor) for where dw goes.
template <class Args, class F>
void for_dw(const Args& a, const F& f) {
  for (const auto& to : {a.dw, a.dw_fp32, a.dw_accum})
    if (to) f(to);
}

template <class P>
void forward_backward(const ForwardBackward<P>& a) {
  if (breaks_promise(a)) return fill_nan(a);
  using S = typename P::Elem;
  const Rows<S> d = logits_gradient(a);
  if (a.dx) array(a.dx) = times<S>(d, array(a.w));
  if (a.dw_accum) array(a.dw_accum) += transpose_times<S>(d, array(a.x));
  if (a.dw_fp32) array(a.dw_fp32) = transpose_times<S>(d, array(a.x));
  if (a.dw) array(a.dw) = transpose_times<S>(d, array(a.x));
  if (a.dbias) array(a.dbias) = Row<S>(d.colwise().sum());
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

// 0 for a logit that is not finite: an infinite one has no rounding error, and a softcap makes
// something finite of it.
template <class S>
Rows<S> finite_part(const Rows<S>& z) {
  return z.isFinite().select(z, Rows<S>::Zero(z.rows(), z.cols()));
}

// The roundings of a logit's sum, Z_j = sum |x_h w_jh| + |bias_j|.
template <class Args>
auto logits_scale(const Args& a) {
  using S = typename Args::Elem;
  Rows<S> z = times_transpose<S>(array(a.x).abs(), array(a.w).abs());
  if (a.bias) z.rowwise() += Row<S>(array(a.bias).abs());
  return finite_part<S>(z);
}

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
  const Rows<S> z = logits(a), z_scale = logits_scale(a);
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

template <class P>
void forward_backward_scale(const ForwardBackward<P>& a) {
  using std::abs;
  using S = typename P::Elem;
  loss_scale(a);
  const Rows<S> z = logits(a), z_scale = logits_scale(a);
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
  }
  if (a.dx) array(a.dx) = times<S>(d, array(a.w).abs());
  const Rows<S> held = a.dw_accum ? Rows<S>(array(a.dw_accum).abs()) : Rows<S>();
  for_dw(a, [&](const auto& to) { array(to) = transpose_times<S>(d, array(a.x).abs()); });
  if (a.dw_accum) array(a.dw_accum) += held;
  if (a.dbias) array(a.dbias) = Row<S>(d.colwise().sum());
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
//
// Where all logits are nearly equal the entropy is at its maximum and has no first derivative:
// there it moves by -1/2 Var_p(z delta), which is never more than u_T^2 / 2 sum p z^2, and always
// downwards, so that it adds over rows. second_order() is that over the budget's 4 u_T.
template <class S>
S second_order(const Row<S>& lse_gradient, const Row<S>& sizes) {
  return S(kStep / 16) * (lse_gradient * sizes.square()).sum();  // u_T / 8, u_T half a step
}
// What the roundings of a stored logit are relative to. With a bias there may be one more, of the
// product before it is added: cuBLASLt's on an H200.
template <class Args, class S>
Rows<S> rounded_sizes(const Args& a, const Rows<S>& finite) {
  if (!a.bias) return finite;
  const Rows<S> product = finite.rowwise() - Row<S>(array(a.bias));
  return (finite.square() + product.square()).sqrt();
}

template <class Args>
void loss_intermediate(const Args& a) {
  using std::abs;
  using std::sqrt;
  using S = typename Args::Elem;
  const Rows<S> z = logits(a);
  const Rows<S> finite = finite_part(z), sizes = rounded_sizes(a, finite);
  const auto w = cross_entropy::weighting(a, z.cols());
  const RowGroups groups = row_groups(finite);
  cross_entropy::RowResults<S> rows(z.rows()), sums(z.rows());  // squares and 1-norms
  Row<S> flat = Row<S>::Zero(z.rows());                         // second_order() of the entropy
  array(a.lse).setZero();
  for (int64_t t = 0; t < z.rows(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const auto of = sensitivity<S>(z.row(t), a.target.data[t], a, w);
    const Dependence<S> logits_depend(finite.row(t));
    const auto put = [&](Row<S>& square, Row<S>& sum, const Row<S>& gradient, const S& factor) {
      const Row<S> factors = factor * gradient * sizes.row(t);
      square[t] = squared_norm<S>(factors, logits_depend);
      sum[t] = factors.abs().sum();
    };
    put(rows.loss, sums.loss, of.gradient, S(1));
    put(rows.entropy, sums.entropy, of.entropy_gradient, S(1));
    put(rows.z_part, sums.z_part, of.lse_gradient, S(2 * a.z_loss) * of.lse);
    a.lse.data[t] = sqrt(squared_norm<S>(of.lse_gradient * sizes.row(t), logits_depend));
    flat[t] = second_order<S>(of.lse_gradient, sizes.row(t));
  }
  const auto write = [&](const auto& out, const Row<S>& squares, const Row<S>& one_norms,
                         const S& share, const Row<S>& more) {
    if (!out) return;
    if (a.reduction == Reduction::kNone)
      array(out) = squares.sqrt() + more;
    else
      out.data[0] = (over_rows<S>(squares.transpose(), one_norms.transpose(),
                                  Rows<S>::Ones(z.rows(), 1), groups)(0, 0) +
                     more.sum()) *
                    share;
  };
  const Row<S> none = Row<S>::Zero(z.rows());
  write(a.loss, rows.loss, sums.loss, w.share, none);
  write(a.z_part, rows.z_part, sums.z_part, w.plain_share, none);
  write(a.accuracy, rows.accuracy, sums.accuracy, w.plain_share, none);
  write(a.entropy, rows.entropy, sums.entropy, w.plain_share, flat);
}

template <class P>
void forward_intermediate(const Forward<P>& a) {
  loss_intermediate(a);
}

template <class P>
void forward_backward_intermediate(const ForwardBackward<P>& a) {
  using std::abs;
  using S = typename P::Elem;
  loss_intermediate(a);
  const auto x = array(a.x), w = array(a.w);  // [T, H], [V, H]
  const Rows<S> z = logits(a);
  const Rows<S> finite = finite_part(z), sizes = rounded_sizes(a, finite);
  const auto weights = cross_entropy::weighting(a, z.cols());
  const Row<S> g = cross_entropy::upstream(a, weights);
  Rows<S> dx2 = Rows<S>::Zero(x.rows(), x.cols());
  Rows<S> d2 = Rows<S>::Zero(z.rows(), z.cols()), d1 = d2;  // change of D, squares and 1-norms
  for (int64_t t = 0; t < z.rows(); ++t) {
    if (a.target.data[t] == a.ignore_index) continue;
    const auto of = sensitivity<S>(z.row(t), a.target.data[t], a, weights);
    const Row<S> stored = (g[t] * of.gradient).square();
    const Dependence<S> logits_depend(finite.row(t));
    if (a.dx) {
      const Row<S> vw = times<S>(of.v, w);  // [1, H]
      const Rows<S> hessian_w =
          (w.colwise() * of.d.transpose() + times<S>(of.c * of.v.transpose(), vw)) * g[t];
      const Rows<S> stored_w = w.colwise() * (g[t] * of.gradient).transpose();
      dx2.row(t) = squared_norms<S>(stored_w, Dependence<S>(of.lse_gradient)) +
                   squared_norms<S>(hessian_w.colwise() * sizes.row(t).transpose(), logits_depend);
    }
    const Row<S> vz = of.v * sizes.row(t);
    const S all = squared_norm<S>(vz, logits_depend);
    const Row<S> other_columns =
        logits_depend.any() ? Row<S>(Row<S>::Constant(vz.size(), all)) : Row<S>(all - vz.square());
    const Row<S> others = (of.c * of.v).square() * other_columns;
    const Row<S> diagonal = of.hessian_diagonal() * sizes.row(t);
    d2.row(t) = stored + g[t] * g[t] * (diagonal.square() + others);
    d1.row(t) = abs(g[t]) * (of.gradient.abs() + diagonal.abs() +
                             (of.c * of.v).abs() * (vz.abs().sum() - vz.abs()));
  }
  if (a.dx) array(a.dx) = dx2.sqrt();
  const RowGroups groups = row_groups(finite);
  const Rows<S> one = Rows<S>::Ones(z.rows(), 1);
  for_dw(a, [&](const auto& to) { array(to) = over_rows<S>(d2, d1, x, groups); });
  if (a.dbias) array(a.dbias) = over_rows<S>(d2, d1, one, groups).transpose();
}

}  // namespace tigon::reference::linear_cross_entropy
