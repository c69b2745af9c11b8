// SPDX-License-Identifier: Apache-2.0
// Test data that shows faults: each distribution is a function of row and column.
#include "harness/run/inputs/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "harness/judge/budget.h"
#include "harness/run/inputs/inputs.h"

namespace tigon {

namespace {

using Context = FillContext;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

uint64_t index_of(const Context& c, int64_t row, int64_t column) {
  return static_cast<uint64_t>(row * c.columns + column);
}

double normal(const Context& c, int64_t row, int64_t column) {
  return c.mean + c.scale * random_normal(c.key, index_of(c, row, column));
}

double outliers(const Context& c, int64_t row, int64_t column) {
  const bool hit = random_uniform(~c.key, index_of(c, row, column)) < c.parameter("share", 0.01);
  return normal(c, row, column) * (hit ? c.parameter("factor", 30) : 1);
}

double mixed_rows(const Context& c, int64_t row, int64_t column) {
  constexpr double kFactor[] = {0, 1e-3, 16, 1};
  return normal(c, row, column) * kFactor[row % 4];
}

double angle(const Context& c, int64_t row, int64_t column) {
  const double exponent =
      -static_cast<double>(column) / static_cast<double>(c.columns);  // columns = D / 2
  return static_cast<double>(row) * std::pow(c.parameter("theta", 10000), exponent);
}
double rotary_cos(const Context& c, int64_t row, int64_t column) {
  return std::cos(angle(c, row, column));
}
double rotary_sin(const Context& c, int64_t row, int64_t column) {
  return std::sin(angle(c, row, column));
}

int64_t random_target(uint64_t seed, int64_t row, int64_t classes) {
  const uint64_t bits = random_bits(stream_key(seed, "target"), static_cast<uint64_t>(row));
  // The first rows take the first and the last class, where indexing errors show.
  if (row == 0) return classes - 1;
  if (row == 1) return 0;
  return static_cast<int64_t>(bits % static_cast<uint64_t>(classes));
}

double targets(const Context& c, int64_t, int64_t index) {
  const int64_t classes = c.below();
  const double draw = random_uniform(~c.key, static_cast<uint64_t>(index));
  const double ignored = c.parameter("ignored", 0), invalid = c.parameter("invalid", 0);
  if (draw < ignored) return c.binding.at("ignore_index");
  if (draw < ignored + invalid) return static_cast<double>(index % 2 == 0 ? classes : -1);
  if (classes == 0) return 0;
  return static_cast<double>(random_target(c.seed, index, classes));
}

double positions(const Context& c, int64_t row, int64_t column) {
  const auto rows = static_cast<uint64_t>(c.below());
  return static_cast<double>(random_bits(c.key, index_of(c, row, column)) %
                             std::max<uint64_t>(rows, 1));
}

double confident(const Context& c, int64_t row, int64_t column) {
  const double peak =
      column == random_target(c.seed, row, c.columns) ? c.parameter("margin", 12) : 0;
  return normal(c, row, column) + peak;
}

// Rows that the model knows, that it has wrong, that are flat, and that lie far from zero.
double easy_and_hard(const Context& c, int64_t row, int64_t column) {
  const bool at_target = column == random_target(c.seed, row, c.columns);
  const double x = normal(c, row, column);
  if (row % 4 == 0) return at_target ? x + 30 : x;
  if (row % 4 == 1) return at_target ? x - 30 : x;
  if (row % 4 == 2) return 1e-3 * x;
  return 4 * x - 100;
}

// Logits whose log-sum-exp is near 0: a row of n normal logits has about log(n) + 1/2.
double near_zero_lse(const Context& c, int64_t row, int64_t column) {
  return normal(c, row, column) - std::log(static_cast<double>(c.columns)) - 0.5;
}

double last_block(const Context& c, int64_t row, int64_t column) {
  return normal(c, row, column) + (column == c.columns - 1 ? c.parameter("margin", 30) : 0);
}

double first_column(const Context& c, int64_t row, int64_t column) {
  return column == 0 ? c.parameter("value", 1) : normal(c, row, column);
}

double last_row(const Context& c, int64_t row, int64_t column) {
  if (column > 0) return normal(c, row, column);
  return row == c.rows - 1 ? c.parameter("value", 1) : 0;
}

// Whole lanes and blocks of a row see nothing but -inf, at its end or at its start.
double masked(const Context& c, int64_t row, int64_t column) {
  const int64_t from_seen_end = row % 2 == 0 ? column : c.columns - 1 - column;
  return from_seen_end <= row ? normal(c, row, column) : -kInfinity;
}

// ---- special rows among normal ones -------------------------------------------------------------

// Every `every`-th (2nd) row, the first included, is special.
bool is_special(const Context& c, int64_t row) {
  return row % static_cast<int64_t>(c.parameter("every", 2)) == 0;
}

double rows_of(const Context& c, int64_t row, int64_t column) {
  return is_special(c, row) ? c.parameter("value", 0) : normal(c, row, column);
}

double equal_rows(const Context& c, int64_t row, int64_t column) {
  return normal(c, row, is_special(c, row) ? 0 : column);
}

// The place moves from row to row and starts at the last column, where tails end.
int64_t marked_column(const Context& c, int64_t row) {
  return (c.columns - 1 + row * 5) % c.columns;
}

double one_hot(const Context& c, int64_t row, int64_t column) {
  if (!is_special(c, row)) return normal(c, row, column);
  return column == marked_column(c, row) ? c.parameter("value", 1) : 0;
}

double one_element(const Context& c, int64_t row, int64_t column) {
  const bool marked = is_special(c, row) && column == marked_column(c, row);
  return marked ? c.parameter("value", 0) : normal(c, row, column);
}

// Below the normal range of f32 and bf16 in even columns, of f16 in odd ones.
double denormal_rows(const Context& c, int64_t row, int64_t column) {
  if (!is_special(c, row)) return normal(c, row, column);
  return random_normal(c.key, index_of(c, row, column)) * (column % 2 == 0 ? 1e-39 : 1e-5);
}

double largest_rows(const Context& c, int64_t row, int64_t column) {
  const double x = normal(c, row, column);
  if (!is_special(c, row)) return x;
  return std::copysign(std::min(largest_finite(c.dtype), c.parameter("limit", kInfinity)), x);
}

}  // namespace

double FillContext::parameter(const std::string& name, double otherwise) const {
  const auto found = plan.parameters.find(name);
  return found == plan.parameters.end() ? otherwise : found->second;
}

int64_t FillContext::below() const {
  if (!plan.below) throw std::logic_error(plan.tensor + ": the plan says no size of its indices");
  return plan.below->integer(binding);
}

const std::vector<Distribution>& all_distributions() {
  static const std::vector<Distribution> all = {
      {"normal", normal, "mean (0) + scale (1) * N(0, 1); all others start from it"},
      {"outliers", outliers,
       "an element is `factor` (30) times larger with probability `share` (0.01)"},
      {"mixed_rows", mixed_rows, "row 4i is 0, row 4i+1 times 1e-3, row 4i+2 times 16"},
      {"equal_rows", equal_rows, "every second row has equal elements"},
      {"one_hot", one_hot,
       "every second row is 0 but for one `value` (1), first in the last column"},
      {"rows_of", rows_of, "every `every`-th (2nd) row is `value` (0): zero, -0, -inf, a constant"},
      {"one_element", one_element,
       "every second row has one `value` (NaN, inf or -inf), first in the last column"},
      {"denormal_rows", denormal_rows,
       "every second row lies below the normal range: f32 and bf16 1e-39, f16 1e-5"},
      {"largest_rows", largest_rows,
       "every second row is +- the largest finite value, at most `limit` (inf)"},
      {"masked", masked, "row i is -inf but for i + 1 columns, the first or by turns the last"},
      {"first_column", first_column, "column 0 is `value` (1)"},
      {"last_row", last_row, "column 0 is 0, and `value` (1) in the last row"},
      {"last_block", last_block, "the last column is larger by `margin` (30): a late maximum"},
      {"rotary_cos", rotary_cos, "cosine of row * theta^(-2 column / D), theta (10000)"},
      {"rotary_sin", rotary_sin, "sine of the same angle"},
      {"targets", targets,
       "classes, row 0 the last and row 1 the first; with probability `ignored` (0) ignore_index, "
       "with probability `invalid` (0) -1 or their number"},
      {"positions", positions, "rows of a table"},
      {"confident", confident, "the target's logit is larger by `margin` (12); p -> 1 with 60"},
      {"easy_and_hard", easy_and_hard,
       "rows by turns: target +30, target -30, nearly flat, wide and far from 0"},
      {"near_zero_lse", near_zero_lse, "logits whose log-sum-exp is near 0"},
  };
  return all;
}

const Distribution* find_distribution(const std::string& name) {
  for (const Distribution& d : all_distributions())
    if (name == d.name) return &d;
  return nullptr;
}

}  // namespace tigon
