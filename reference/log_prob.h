// SPDX-License-Identifier: Apache-2.0
// Oracle of log_prob in plain Eigen, and S: the same formulas with every term replaced by its
// absolute value. z is a row of logits divided by the temperature.
#pragma once
#include "kernels/log_prob/log_prob.h"
#include "reference/cross_entropy_scale.h"

namespace tigon::reference::log_prob {

using cross_entropy::finite_abs;
using cross_entropy::is_class;
using cross_entropy::largest;
using cross_entropy::probabilities;
using tigon::log_prob::Backward;
using tigon::log_prob::Forward;

template <class Args>
Row<typename Args::Elem> tempered_row(const Args& a, int64_t t) {
  using S = typename Args::Elem;
  return array(a.logits).row(t) / S(a.temperature);
}

// Calls row(t, z, y, lse) of every row that is not ignored, `ignored` of every other; y is -1 for a
// target that is no class.
template <class Args, class OfRow, class OfIgnored>
void for_each_row(const Args& a, const OfRow& row, const OfIgnored& ignored) {
  for (int64_t t = 0; t < a.target.shape[0]; ++t) {
    const int64_t y = a.target.data[t];
    if (y == a.ignore_index)
      ignored(t);
    else
      row(t, tempered_row(a, t), is_class(y, a.logits.shape[1]) ? y : -1);
  }
}

template <class P>
void write_row(const Forward<P>& a, int64_t t, const typename P::Elem& logp,
               const typename P::Elem& lse, const typename P::Elem& entropy) {
  a.logp.data[t] = logp;
  a.lse.data[t] = lse;
  if (a.entropy) a.entropy.data[t] = entropy;
}

template <class P>
void forward(const Forward<P>& a) {
  using S = typename P::Elem;
  const S nan(std::numeric_limits<double>::quiet_NaN());
  for_each_row(
      a,
      [&](int64_t t, const Row<S>& z, int64_t y) {
        const S lse = cross_entropy::log_sum_exp(z);
        const S logp = y >= 0 ? S(z[y] - lse) : nan;
        write_row(a, t, logp, lse, a.entropy ? cross_entropy::row_entropy(z, lse) : S(0));
      },
      [&](int64_t t) { write_row(a, t, S(0), S(0), S(0)); });
}

// x log p, and 0 where p is 0.
template <class S>
Row<S> times_log_p(const Row<S>& x, const Row<S>& p, const Row<S>& log_p) {
  return (p == S(0)).select(Row<S>::Zero(p.size()), x * log_p);
}

// NaN where forward's entropy is missing, without which there is no gradient of it.
template <class Args>
auto entropy_of(const Args& a, int64_t t) {
  using S = typename Args::Accum;
  return a.entropy ? S(a.entropy.data[t]) : S(std::numeric_limits<double>::quiet_NaN());
}

// log p from a saved lse, whose rounding must not make p more than 1.
template <class S>
Row<S> log_p_of(const Row<S>& z, const S& lse) {
  const Row<S> log_p = z - lse;
  return (log_p > S(0)).select(Row<S>::Zero(z.size()), log_p);
}

template <class P>
void backward(const Backward<P>& a) {
  using S = typename P::Elem;
  for_each_row(
      a,
      [&](int64_t t, const Row<S>& z, int64_t y) {
        auto dx = array(a.dlogits).row(t);
        const S g = a.dlogp.data[t], lse = a.lse.data[t];
        if (y < 0) {
          dx.setConstant(S(std::numeric_limits<double>::quiet_NaN()));
          return;
        }
        const Row<S> log_p = log_p_of(z, lse), p = probabilities(log_p, S(0));
        Row<S> dz = -g * p;
        if (a.dentropy)
          dz -= a.dentropy.data[t] * (times_log_p<S>(p, p, log_p) + p * entropy_of(a, t));
        dz[y] += g;
        dx = dz / S(a.temperature);
      },
      [&](int64_t t) { array(a.dlogits).row(t).setZero(); });
}

// ---- S ------------------------------------------------------------------------------------------

template <class P>
void forward_scale(const Forward<P>& a) {
  using S = typename P::Elem;
  using std::abs;
  for_each_row(
      a,
      [&](int64_t t, const Row<S>& z, int64_t y) {
        const S lse = cross_entropy::log_sum_exp(z), scale = cross_entropy::lse_scale(z, lse);
        const S logp =
            y >= 0 ? S(scale + cross_entropy::few_roundings<S>(abs(z[y]), z.size())) : S(0);
        write_row(a, t, logp, scale, a.entropy ? cross_entropy::row_entropy_scale(z, lse) : S(0));
      },
      [&](int64_t t) { write_row(a, t, S(0), S(0), S(0)); });
}

// p is off by the roundings of its exponent z - lse, beside those of an elementary function: of z
// in the inverse temperature and its product, of z - lse, and of the product with log2 e and of
// this constant (u/4) that the instruction for 2^x needs. With n = 1 and c0 = 24 the budget
// (4 sqrt(n) + c0) u S is then (28 + 4.25 |z| + 2.25 |lse|) u p. Where exp underflows in fp32, p is
// off by up to 2^-126, and where the exponent is off by more than 1, p is anything up to 1, with
// the roundings of its products and of storing it: that of the oracle's value, which may be 0, is
// none.
template <class S>
Row<S> probability_scale(const Row<S>& z, const S& lse) {
  using std::abs;
  constexpr double kExpected = 4 + 24, kUnderflow = 0x1p-106, kUnit = 0x1p24,  // 1 / u
      kStored = 1 + 0x1p-8;                                                    // in bf16
  const Row<S> exponent = S(4.25) * finite_abs(z) + S(2.25) * abs(lse);
  const Row<S> unknown = Row<S>::Constant(z.size(), S((kStored * kUnit + kExpected) / kExpected));
  return probabilities(log_p_of(z, lse), S(0)) * (S(1) + exponent / S(kExpected)) + S(kUnderflow) +
         (exponent > S(kUnit)).select(unknown, Row<S>::Zero(z.size()));
}

template <class P>
void backward_scale(const Backward<P>& a) {
  using S = typename P::Elem;
  using std::abs;
  for_each_row(
      a,
      [&](int64_t t, const Row<S>& z, int64_t y) {
        const S g = abs(a.dlogp.data[t]), lse = a.lse.data[t];
        Row<S> factor = Row<S>::Constant(z.size(), g);
        if (a.dentropy)
          factor +=
              abs(a.dentropy.data[t]) * (finite_abs(z) + S(abs(lse)) + S(abs(entropy_of(a, t))));
        Row<S> dz = probability_scale(z, lse) * factor;
        if (y >= 0) dz[y] += g;
        array(a.dlogits).row(t) = dz / S(a.temperature);
      },
      [&](int64_t t) { array(a.dlogits).row(t).setZero(); });
}

// Compiled once, in log_prob.cpp.
extern template Row<double> times_log_p(const Row<double>&, const Row<double>&, const Row<double>&);
extern template Row<double> log_p_of(const Row<double>&, const double&);
extern template Row<double> probability_scale(const Row<double>&, const double&);
extern template void forward(const Forward<F64>&);
extern template void backward(const Backward<F64>&);
extern template void forward_scale(const Forward<F64>&);
extern template void backward_scale(const Backward<F64>&);

}  // namespace tigon::reference::log_prob
