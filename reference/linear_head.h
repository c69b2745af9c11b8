// SPDX-License-Identifier: Apache-2.0
// What the oracles of losses behind a linear layer share: logits z = x w^T + bias with their
// roundings, the caller's promise about valid rows, and where gradients go.
#pragma once
#include <algorithm>
#include <cmath>

#include "reference/products.h"
#include "reference/rounded_alike.h"

namespace tigon::reference::linear_head {

// What every pass has of the layer, and where it writes gradients.
template <class S>
struct Layer {
  View<const S, 2> x, w;
  View<const S, 1> bias;
};
template <class S>
struct Gradients {
  View<S, 2> dx, dx_fp32, dw, dw_fp32, dw_accum;
  View<S, 1> dbias;
};
template <class Args>
bool has_dx(const Args& a) {
  return a.dx || a.dx_fp32;
}
template <class Args>
Layer<typename Args::Elem> layer_of(const Args& a) {
  return {a.x, a.w, a.bias};
}
template <class Args>
Gradients<typename Args::Elem> gradients_of(const Args& a) {
  return {a.dx, a.dx_fp32, a.dw, a.dw_fp32, a.dw_accum, a.dbias};
}

// z = x w^T + bias [T, V]
template <class S>
Rows<S> logits(const Layer<S>& a) {
  Rows<S> z = times_transpose<S>(array(a.x), array(a.w));
  if (a.bias) z.rowwise() += Row<S>(array(a.bias));
  return z;
}
template <class Args>
auto logits(const Args& a) {
  return logits(layer_of(a));
}

// More rows are not ignored than the caller has promised: every result is NaN.
template <class Args>
bool breaks_promise(const Args& a) {
  const int64_t* const first = a.target.data;
  const int64_t* const last = first + a.target.shape[0];
  return a.max_valid_rows >= 0 &&
         last - first > a.max_valid_rows + std::count(first, last, a.ignore_index);
}

// Calls f(tensor) for where dx goes, and where dw goes.
template <class S, class F>
void for_dx(const Gradients<S>& a, const F& f) {
  for (const auto& to : {a.dx, a.dx_fp32})
    if (to) f(to);
}
template <class S, class F>
void for_dw(const Gradients<S>& a, const F& f) {
  for (const auto& to : {a.dw, a.dw_fp32, a.dw_accum})
    if (to) f(to);
}

// dx, dw and dbias of dlogits d [T, V].
template <class S>
void write_gradients(const Layer<S>& a, const Gradients<S>& to, const Rows<S>& d) {
  for_dx(to, [&](const auto& dx) { array(dx) = times<S>(d, array(a.w)); });
  if (to.dw_accum) array(to.dw_accum) += transpose_times<S>(d, array(a.x));
  if (to.dw_fp32) array(to.dw_fp32) = transpose_times<S>(d, array(a.x));
  if (to.dw) array(to.dw) = transpose_times<S>(d, array(a.x));
  if (to.dbias) array(to.dbias) = Row<S>(d.colwise().sum());
}
template <class Args, class S>
void write_gradients(const Args& a, const Rows<S>& d) {
  write_gradients(layer_of(a), gradients_of(a), d);
}

// S of them, of dlogits' S.
template <class S>
void write_gradients_scale(const Layer<S>& a, const Gradients<S>& to, const Rows<S>& d) {
  for_dx(to, [&](const auto& dx) { array(dx) = times<S>(d, array(a.w).abs()); });
  const Rows<S> held = to.dw_accum ? Rows<S>(array(to.dw_accum).abs()) : Rows<S>();
  for_dw(to, [&](const auto& dw) { array(dw) = transpose_times<S>(d, array(a.x).abs()); });
  if (to.dw_accum) array(to.dw_accum) += held;
  if (to.dbias) array(to.dbias) = Row<S>(d.colwise().sum());
}

template <class S>
void fill_gradients(const Gradients<S>& a, const S& value) {
  for (const auto& out : {a.dx, a.dx_fp32, a.dw, a.dw_fp32, a.dw_accum})
    if (out) array(out).setConstant(value);
  if (a.dbias) array(a.dbias).setConstant(value);
}

// 0 for a logit that is not finite: an infinite one has no rounding error, and a softcap makes
// something finite of it.
template <class S>
Rows<S> finite_part(const Rows<S>& z) {
  return z.isFinite().select(z, Rows<S>::Zero(z.rows(), z.cols()));
}

// The roundings of a logit's sum, Z_j = sum |x_h w_jh| + |bias_j|.
template <class S>
Rows<S> logits_scale(const Layer<S>& a) {
  Rows<S> z = times_transpose<S>(array(a.x).abs(), array(a.w).abs());
  if (a.bias) z.rowwise() += Row<S>(array(a.bias).abs());
  return finite_part<S>(z);
}

// Where all logits are nearly equal the entropy is at its maximum and has no first derivative:
// there it moves by -1/2 Var_p(z delta), which is never more than u_T^2 / 2 sum p z^2, and always
// downwards, so that it adds over rows. second_order() is that over the budget's 4 u_T.
template <class S>
S second_order(const Row<S>& lse_gradient, const Row<S>& sizes) {
  return S(kStep / 16) * (lse_gradient * sizes.square()).sum();  // u_T / 8, u_T half a step
}
// What the roundings of a stored logit are relative to. With a bias there may be one more, of the
// product before it is added: cuBLASLt's on an H200.
template <class S>
Rows<S> rounded_sizes(const Layer<S>& a, const Rows<S>& finite) {
  if (!a.bias) return finite;
  const Rows<S> product = finite_part<S>(finite.rowwise() - Row<S>(array(a.bias)));
  return (finite.square() + product.square()).sqrt();
}

// Logits as they are stored: what their roundings are relative to, and which are rounded alike.
template <class S>
class Stored {
 public:
  Rows<S> finite, sizes;

  Stored(const Layer<S>& layer, const Rows<S>& logits)
      : finite(finite_part(logits)),
        sizes(rounded_sizes(layer, finite)),
        layer_(layer),
        w_squares_(array(layer.w).square().colwise().sum()) {}

  // Logits that differ by a power of two are rounded alike, too: of inputs with few bits and few
  // columns there are many.
  Dependence<S> dependence(int64_t t) const {
    const Row<S> z = finite.row(t);
    return Dependence<S>(z, decisive(t, z).abs().unaryExpr([](const S& v) {
      int exponent;
      return std::frexp(v, &exponent);
    }));
  }

 private:
  // What decides how a row's logits are rounded: the column of w in whose product they lie, where
  // the other products move them by less than a step; else themselves.
  Row<S> decisive(int64_t t, const Row<S>& z) const {
    if (w_squares_.size() == 0 || z.size() == 0) return z;
    const Row<S> x = array(layer_.x).row(t);
    Eigen::Index h;
    (x.square() * w_squares_).maxCoeff(&h);
    const Row<S> column = array(layer_.w).col(h).transpose(), others = z - x[h] * column;
    const S spread = (others - others.mean()).square().mean();
    return spread < S(kStep * kStep) * z.square().mean() ? column : z;
  }

  Layer<S> layer_;
  Row<S> w_squares_;
};

// How roundings of stored logits move a result of rows: squares of 2-norms, 1-norms, and what adds
// over rows beside them.
template <class S>
struct MovedResult {
  Row<S> squares, one_norms, more;
  explicit MovedResult(int64_t rows) { squares = one_norms = more = Row<S>::Zero(rows); }

  // By these factors of the logits' deltas.
  void put(int64_t t, const Row<S>& factors, const Dependence<S>& of) {
    squares[t] = squared_norm<S>(factors, of);
    one_norms[t] = factors.abs().sum();
  }
};
// Its S2, or that of its sum over rows times `share`.
template <class S>
void write_moved(const View<S, 1>& out, const MovedResult<S>& moved, bool is_sum, const S& share,
                 const RowGroups& groups) {
  if (!out) return;
  const Row<S>&squares = moved.squares, &one_norms = moved.one_norms;
  if (!is_sum) {
    array(out) = squares.sqrt() + moved.more;
    return;
  }
  const Rows<S> one = Rows<S>::Ones(squares.size(), 1);
  const S sum = over_rows<S>(squares.transpose(), one_norms.transpose(), one, groups)(0, 0);
  out.data[0] = (sum + moved.more.sum()) * share;
}

// How roundings of stored values move dlogits and dx: squares of 2-norms and, of dlogits, 1-norms
// and the part that is their own rounding.
template <class S>
struct Moved {
  Rows<S> d_squares, d_sums, stored;  // [T, V]
  Rows<S> dx_squares;                 // [T, H]

  Moved(int64_t rows, int64_t columns, int64_t hidden)
      : d_squares(Rows<S>::Zero(rows, columns)),
        d_sums(Rows<S>::Zero(rows, columns)),
        stored(Rows<S>::Zero(rows, columns)),
        dx_squares(Rows<S>::Zero(rows, hidden)) {}
};

// S2 of the gradients. dw_ih moves by sum_t x_th (change of D_ti), whose rows are independent where
// their logits `finite` are, and dbias_i likewise.
template <class S>
void write_gradients_intermediate(const Layer<S>& a, const Gradients<S>& to, const Moved<S>& moved,
                                  const Rows<S>& finite) {
  for_dx(to, [&](const auto& dx) { array(dx) = moved.dx_squares.sqrt(); });
  const RowGroups groups = row_groups(finite);
  const Rows<S> x = array(a.x), one = Rows<S>::Ones(finite.rows(), 1);
  const auto of = [&](const Rows<S>& factors) {
    return with_equals<S>(over_rows<S>(moved.d_squares, moved.d_sums, factors, groups),
                          moved.stored, moved.d_sums, factors);
  };
  for_dw(to, [&](const auto& dw) { array(dw) = of(x); });
  if (to.dbias) array(to.dbias) = of(one).transpose();
}

// Compiled once, in linear_head.cpp.
extern template Rows<double> logits(const Layer<double>&);
extern template Rows<double> logits_scale(const Layer<double>&);
extern template Rows<double> finite_part(const Rows<double>&);
extern template double second_order(const Row<double>&, const Row<double>&);
extern template Rows<double> rounded_sizes(const Layer<double>&, const Rows<double>&);
extern template void write_moved(const View<double, 1>&, const MovedResult<double>&, bool,
                                 const double&, const RowGroups&);
extern template void write_gradients(const Layer<double>&, const Gradients<double>&,
                                     const Rows<double>&);
extern template void write_gradients_scale(const Layer<double>&, const Gradients<double>&,
                                           const Rows<double>&);
extern template void fill_gradients(const Gradients<double>&, const double&);
extern template void write_gradients_intermediate(const Layer<double>&, const Gradients<double>&,
                                                  const Moved<double>&, const Rows<double>&);

}  // namespace tigon::reference::linear_head
