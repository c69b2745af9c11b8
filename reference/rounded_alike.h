// Roundings of stored logits that are not independent, as S2 of linear_cross_entropy counts them.
//
// Logits that lie within a step of their type of each other are rounded alike: their deltas are not
// independent. There S2 is at least a quarter of the 1-norm, with which the budget's 4 u_T S2 is
// the bound of all roundings at their worst.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "reference/products.h"

namespace tigon::reference {

inline constexpr double kStep = 0x1p-7;  // of bf16, the largest, relative to a value

template <class S>
bool rounded_alike(const Row<S>& z) {
  const S spread = (z - z.mean()).square().mean(), step = S(kStep) * z.abs().maxCoeff();
  return spread < step * step;
}

// The square of S2 for the deltas with these factors [n, m], of each column.
template <class S>
Row<S> squared_norms(const Rows<S>& factors, bool alike) {
  const Row<S> squares = factors.square().colwise().sum();
  if (!alike) return squares;
  return squares.max((factors.abs().colwise().sum() / S(4)).square());
}
template <class S>
S squared_norm(const Row<S>& factors, bool alike) {
  return squared_norms<S>(factors.transpose(), alike)[0];
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

}  // namespace tigon::reference
