// SPDX-License-Identifier: Apache-2.0
// Roundings of stored logits that are not independent, as S2 of linear_cross_entropy counts them.
//
// Logits that lie within a step of their type of each other are rounded alike: their deltas are not
// independent. There S2 is at least a quarter of the 1-norm, with which the budget's 4 u_T S2 is
// the bound of all roundings at their worst. Logits that are equal, as many are of few inputs with
// few bits, have one delta: m times as many of them as values make the 2-norm sqrt(m) times as
// large, up to the same bound.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <vector>

#include "reference/products.h"

namespace tigon::reference {

inline constexpr double kStep = 0x1p-7;  // of bf16, the largest, relative to a value

template <class S>
bool rounded_alike(const Row<S>& z) {
  const S spread = (z - z.mean()).square().mean(), step = S(kStep) * z.abs().maxCoeff();
  return spread < step * step;
}

// Takes out values that have no equal: each is alone in its bucket (Fibonacci hashing, Knuth,
// The Art of Computer Programming, volume 3, 6.4). A sort of what is left is short.
inline void erase_those_alone(std::vector<double>& values) {
  constexpr int kBits = 20;
  if (std::ssize(values) < (1 << kBits) / 256) return;  // a sort is shorter than the buckets
  const auto bucket = [](double v) {
    return (std::bit_cast<uint64_t>(v) * 0x9E3779B97F4A7C15u) >> (64 - kBits);
  };
  std::vector<bool> once(1 << kBits), again(1 << kBits);
  for (const double v : values) {
    again[bucket(v)] = once[bucket(v)];
    once[bucket(v)] = true;
  }
  std::erase_if(values, [&](double v) { return !again[bucket(v)]; });
}

// How many other than 0 are equal to one, itself included, on average; equal up to this share.
template <class S>
S equals_of_one(const Row<S>& z, double share = 0) {
  using std::abs;
  std::vector<S> values;
  std::copy_if(z.begin(), z.end(), std::back_inserter(values),
               [](const S& v) { return v != S(0); });
  const auto all = std::ssize(values);
  if constexpr (std::is_same_v<S, double>)
    if (share == 0) erase_those_alone(values);
  std::sort(values.begin(), values.end());
  S pairs(double(all - std::ssize(values)));
  for (auto first = values.begin(), last = first; first != values.end(); first = last) {
    const S most(*first + abs(*first) * S(share));
    last = std::find_if(first, values.end(), [&](const S& v) { return v > most; });
    pairs += S(double(last - first)) * S(double(last - first));
  }
  return all == 0 ? S(1) : S(pairs / S(double(all)));
}

template <class S>
struct Dependence {
  bool alike;
  S equals;

  explicit Dependence(const Row<S>& z) : Dependence(z, z) {}
  // Values of which those are equal that have equal `signs`.
  Dependence(const Row<S>& z, const Row<S>& signs)
      : alike(rounded_alike<S>(z)), equals(equals_of_one<S>(signs)) {}
  bool any() const { return alike || equals > S(1); }
};

// The square of S2 for the deltas with these factors [n, m], of each column.
template <class S>
Row<S> squared_norms(const Rows<S>& factors, const Dependence<S>& of) {
  const Row<S> squares = factors.square().colwise().sum();
  if (!of.any()) return squares;
  const Row<S> worst = (factors.abs().colwise().sum() / S(4)).square();
  return squares.max(of.alike ? worst : worst.min(squares * of.equals));
}
template <class S>
S squared_norm(const Row<S>& factors, const Dependence<S>& of) {
  return squared_norms<S>(factors.transpose(), of)[0];
}

// Rows with nearly the same logits are rounded alike, too, and what they add to a sum over rows.
struct RowGroups {
  std::vector<int64_t> apart;
  std::vector<std::vector<int64_t>> alike;
};
template <class S>
RowGroups row_groups(const Rows<S>& z) {
  const auto close = [&](int64_t t, int64_t u) {
    return (z.row(t) - z.row(u)).abs().maxCoeff() <= S(kStep) * z.row(u).abs().maxCoeff();
  };
  const auto sums = z.rowwise().sum().eval();
  std::vector<int64_t> order(static_cast<size_t>(z.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t t, int64_t u) { return sums[t] < sums[u]; });
  RowGroups groups;
  for (auto t = order.begin(), end = t; t != order.end(); t = end) {
    end = std::find_if_not(t, order.end(), [&](int64_t u) { return close(u, *t); });
    if (end - t == 1)
      groups.apart.push_back(*t);
    else
      groups.alike.emplace_back(t, end);
  }
  return groups;
}

// S2 of sum_t factor_t (change_t) [n, m] over rows with these squares and 1-norms [T, n] of their
// changes and factors [T, m]. Rows alike add up, as one row's S2 or, where that is less, as its
// roundings at their worst.
template <class S>
Rows<S> over_rows(const Rows<S>& squares, const Rows<S>& one_norms, const Rows<S>& factors,
                  const RowGroups& groups) {
  const auto apart = [&](const std::vector<int64_t>& rows) {
    return transpose_times<S>(squares(rows, Eigen::all), factors(rows, Eigen::all).square());
  };
  Rows<S> all = apart(groups.apart);
  for (const auto& rows : groups.alike) {
    const Rows<S> worst = squares(rows, Eigen::all).sqrt().min(one_norms(rows, Eigen::all) / S(4));
    const Rows<S> sums = transpose_times<S>(worst, factors(rows, Eigen::all).abs());
    all += apart(rows).max(sums.square());
  }
  return all.sqrt();
}

// That S2 where stored values [T, n] are equal though their rows are not, as the gradients of sure
// predictions: so near each other that even f16 rounds them alike. m times as many of them as
// values count m times, up to the roundings at their worst.
template <class S>
Rows<S> with_equals(const Rows<S>& s2, const Rows<S>& stored, const Rows<S>& one_norms,
                    const Rows<S>& factors) {
  Row<S> others(stored.cols());
  for (int64_t i = 0; i < stored.cols(); ++i)
    others[i] = equals_of_one<S>(stored.col(i).transpose(), 0x1p-12) - S(1);
  if (!(others > S(0)).any()) return s2;
  const Rows<S> more =
      transpose_times<S>(stored.square(), factors.square()).colwise() * others.transpose();
  const Rows<S> worst = transpose_times<S>(one_norms, factors.abs()) / S(4);
  return s2.max((s2.square() + more).sqrt().min(worst));
}

// Compiled once, in linear_head.cpp.
extern template bool rounded_alike(const Row<double>&);
extern template double equals_of_one(const Row<double>&, double);
extern template Row<double> squared_norms(const Rows<double>&, const Dependence<double>&);
extern template double squared_norm(const Row<double>&, const Dependence<double>&);
extern template RowGroups row_groups(const Rows<double>&);
extern template Rows<double> over_rows(const Rows<double>&, const Rows<double>&,
                                       const Rows<double>&, const RowGroups&);
extern template Rows<double> with_equals(const Rows<double>&, const Rows<double>&,
                                         const Rows<double>&, const Rows<double>&);

}  // namespace tigon::reference
