// SPDX-License-Identifier: Apache-2.0
// Pairwise covering of shapes, options, inputs and layouts.
#include "harness/run/cases/covering.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "harness/run/cases/chosen.h"
#include "harness/run/cases/pass_sets.h"

namespace tigon {

namespace {

using Pair = std::tuple<size_t, size_t, size_t, size_t>;

Pair pair_of(size_t f, size_t v, size_t g, size_t w) {
  return f < g ? Pair{f, v, g, w} : Pair{g, w, f, v};
}

class Rows {
 public:
  explicit Rows(const std::vector<size_t>& sizes) : sizes_(sizes) {
    for (size_t f = 0; f < sizes.size(); ++f)
      for (size_t g = f + 1; g < sizes.size(); ++g)
        for (size_t v = 0; v < sizes[f]; ++v)
          for (size_t w = 0; w < sizes[g]; ++w) open_.insert({f, v, g, w});
  }

  bool done() const { return open_.empty(); }

  // A row through the first pair that is open, the other factors chosen one by one so that most
  // open pairs are met.
  Row next() {
    const auto [f, v, g, w] = *open_.begin();
    Row row(sizes_.size(), kNone);
    row[f] = v;
    row[g] = w;
    for (size_t h = 0; h < row.size(); ++h)
      if (row[h] == kNone) row[h] = best_value(row, h);
    for (size_t a = 0; a < row.size(); ++a)
      for (size_t b = a + 1; b < row.size(); ++b) open_.erase({a, row[a], b, row[b]});
    ++turn_;
    return row;
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  size_t best_value(const Row& row, size_t factor) const {
    size_t best = 0;
    int most = -1;
    for (size_t i = 0; i < sizes_[factor]; ++i) {
      const size_t value = (i + turn_) % sizes_[factor];  // of equal ones another each time
      int met = 0;
      for (size_t g = 0; g < row.size(); ++g)
        if (row[g] != kNone)
          met += static_cast<int>(open_.count(pair_of(factor, value, g, row[g])));
      if (met > most) {
        most = met;
        best = value;
      }
    }
    return best;
  }

  std::vector<size_t> sizes_;
  std::set<Pair> open_;
  size_t turn_ = 0;
};

// What the factors of one implementation stand for.
struct Factors {
  std::vector<DType> dtypes;
  AxisValues axes;
  std::vector<OptionSet> options;
  std::vector<InputSet> inputs;
  // Shift, skew and gap.
  std::vector<std::tuple<int, int, int>> layouts = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};

  std::vector<size_t> sizes() const {
    std::vector<size_t> n = {dtypes.size(), options.size(), inputs.size(), layouts.size()};
    for (const auto& [name, values] : axes) n.push_back(values.size());
    return n;
  }
};

Factors factors_of(const OpSpec& op, const Pass& pass, const Implementation& impl,
                   const CheckRequest& request) {
  Factors f;
  f.dtypes = chosen_dtypes(impl.policies, request);
  const bool tiny = request.tier == Tier::kTiny;
  for (const AxisPlan& plan : op.axes)
    f.axes.emplace_back(plan.axis.symbol, sizes_of(plan, request, tiny ? plan.tiny : plan.check));
  for (const OptionSet& set : op.option_sets)
    if (auto options = options_for(pass, set)) f.options.push_back(std::move(*options));
  for (const InputSet& set : op.inputs)
    if (f.inputs.empty() ||
        (input_set_applies(pass, set, op.inputs.front()) && is_judged_on(impl, set)))
      f.inputs.push_back(set);
  if (has_strided(pass)) f.layouts.emplace_back(0, 0, 3);
  return f;
}

// Options that do not fit the sizes make place for the defaults.
Case case_of(const ChosenPass& chosen, const Implementation& impl, const CheckRequest& request,
             const Factors& f, const Row& row) {
  Case c = plain_case(chosen, impl.name, f.dtypes[row[0]], request);
  c.options = f.options[row[1]];
  c.inputs = f.inputs[row[2]].name;
  std::tie(c.shift, c.skew, c.gap) = f.layouts[row[3]];
  for (size_t a = 0; a < f.axes.size(); ++a) c.axes[f.axes[a].first] = f.axes[a].second[row[4 + a]];
  if (!options_fit(*chosen.op, *chosen.pass, c)) c.options.clear();
  return c;
}

}  // namespace

std::vector<Row> pairwise_rows(const std::vector<size_t>& sizes) {
  if (std::count(sizes.begin(), sizes.end(), size_t{0}) > 0) return {};
  std::vector<Row> rows;
  if (sizes.size() < 2) {
    for (size_t v = 0; v < (sizes.empty() ? 1 : sizes[0]); ++v) rows.emplace_back(sizes.size(), v);
    return rows;
  }
  Rows open(sizes);
  while (!open.done()) rows.push_back(open.next());
  return rows;
}

std::vector<size_t> gains_of(const std::vector<Row>& rows) {
  std::set<Pair> met;
  std::vector<size_t> gains;
  for (const Row& row : rows) {
    const size_t before = met.size();
    for (size_t a = 0; a < row.size(); ++a)
      for (size_t b = a + 1; b < row.size(); ++b) met.insert({a, row[a], b, row[b]});
    gains.push_back(met.size() - before);
  }
  return gains;
}

Covering covering_cases(const CheckRequest& request) {
  // Turn by turn: the first row of every implementation, the second, ...
  std::map<size_t, Covering> turns;
  Covering all;
  for (const ChosenPass& chosen : chosen_passes(request))
    for (const Implementation* impl : chosen_implementations(*chosen.pass, request, false)) {
      const Factors factors = factors_of(*chosen.op, *chosen.pass, *impl, request);
      const std::vector<Row> rows = pairwise_rows(factors.sizes());
      const std::vector<size_t> gains = gains_of(rows);
      for (size_t i = 0; i < rows.size(); ++i) {
        turns[i].cases.push_back(case_of(chosen, *impl, request, factors, rows[i]));
        turns[i].gains.push_back(gains[i]);
        all.pairs += gains[i];
      }
    }
  for (const auto& [turn, some] : turns) {
    all.cases.insert(all.cases.end(), some.cases.begin(), some.cases.end());
    all.gains.insert(all.gains.end(), some.gains.begin(), some.gains.end());
  }
  return all;
}

}  // namespace tigon
