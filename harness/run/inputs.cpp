// Test data from named distributions.
#include "harness/run/inputs.h"

#include <bit>
#include <cmath>
#include <map>
#include <stdexcept>

#include "harness/run/case.h"

namespace tigon {

namespace {

struct Context {
  const InputPlan& plan;
  uint64_t seed;
  uint64_t key;
  const Binding& binding;
  int64_t rows, columns;

  double parameter(const std::string& name, double otherwise) const {
    const auto found = plan.parameters.find(name);
    return found == plan.parameters.end() ? otherwise : found->second;
  }
};

double uniform(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

double normal(const Context& c, int64_t row, int64_t column) {
  return c.parameter("mean", 0) +
         c.parameter("scale", 1) *
             random_normal(c.key, static_cast<uint64_t>(row * c.columns + column));
}

double outliers(const Context& c, int64_t row, int64_t column) {
  const auto index = static_cast<uint64_t>(row * c.columns + column);
  const bool hit = uniform(random_bits(~c.key, index)) < c.parameter("share", 0.01);
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
  const auto classes = static_cast<int64_t>(c.binding.at("V"));
  const double draw = uniform(random_bits(~c.key, static_cast<uint64_t>(index)));
  const double ignored = c.parameter("ignored", 0), invalid = c.parameter("invalid", 0);
  if (draw < ignored) return c.binding.at("ignore_index");
  if (draw < ignored + invalid) return static_cast<double>(index % 2 == 0 ? classes : -1);
  if (classes == 0) return 0;
  return static_cast<double>(random_target(c.seed, index, classes));
}

double confident(const Context& c, int64_t row, int64_t column) {
  const double peak =
      column == random_target(c.seed, row, c.columns) ? c.parameter("margin", 12) : 0;
  return normal(c, row, column) + peak;
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

using Distribution = double (*)(const Context&, int64_t row, int64_t column);
const std::map<std::string, Distribution>& distributions() {
  static const std::map<std::string, Distribution> all = {
      {"normal", normal},         {"outliers", outliers},     {"mixed_rows", mixed_rows},
      {"rotary_cos", rotary_cos}, {"rotary_sin", rotary_sin}, {"targets", targets},
      {"confident", confident},   {"last_block", last_block}, {"first_column", first_column},
      {"last_row", last_row},
  };
  return all;
}

}  // namespace

uint64_t random_bits(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t stream_key(uint64_t seed, const std::string& tensor) {
  return random_bits(stable_hash(tensor), seed);
}

double random_normal(uint64_t key, uint64_t index) {
  // Of 64 fair coins the number of heads has mean 32 and variance 16; a uniform variable, variance
  // 1/12, fills the gaps between integers.
  const int heads = std::popcount(random_bits(key, 2 * index));
  const double fraction = uniform(random_bits(key, 2 * index + 1)) - 0.5;
  constexpr double kInverseDeviation = 0.24935149047701480;  // 1 / sqrt(16 + 1/12)
  return (heads - 32 + fraction) * kInverseDeviation;
}

void fill(const InputPlan& plan, uint64_t seed, const std::vector<int64_t>& shape,
          const Binding& binding, std::vector<double>* values) {
  const auto found = distributions().find(plan.distribution);
  if (found == distributions().end())
    throw std::logic_error("no distribution '" + plan.distribution + "' for " + plan.tensor);
  int64_t size = 1;
  for (int64_t s : shape) size *= s;
  const int64_t columns = shape.empty() ? 1 : shape.back();
  const Context context{
      plan, seed, stream_key(seed, plan.tensor), binding, columns ? size / columns : 0, columns};
  values->resize(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    (*values)[static_cast<size_t>(i)] = found->second(context, i / columns, i % columns);
}

InputPlan plan_of(const InputSet& set, const std::string& tensor) {
  for (const InputPlan& plan : set.plans)
    if (plan.tensor == tensor) return plan;
  return {tensor, "normal", {}};
}

}  // namespace tigon
