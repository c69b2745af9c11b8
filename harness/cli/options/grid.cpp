// SPDX-License-Identifier: Apache-2.0
// The plane of sizes of a grid.
#include "harness/cli/options/grid.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "harness/cli/options/models.h"
#include "harness/run/cases/chosen.h"

namespace tigon::cli {
namespace {

constexpr int64_t kMostRows = 65536, kMostRowsOnHost = 64;
constexpr size_t kPointsOfAPass = 300;  // more than there is time for
// A larger case says no more of the plane than one of this size, and takes longer.
constexpr double kMostBytes = 0x1p33, kMostFlop = 1e14;
constexpr double kMostBytesOnHost = 0x1p20, kMostFlopOnHost = 1e7;

// A draw below `count` that is the same with every standard library.
size_t draw(std::mt19937_64& random, size_t count) { return random() % count; }

template <class T>
void shuffle(std::vector<T>* list, std::mt19937_64& random) {
  for (size_t i = list->size(); i > 1; --i) std::swap((*list)[i - 1], (*list)[draw(random, i)]);
}

// What all sizes that are checked of an axis are multiples of: 2 of the elements of a rotated head.
int64_t step_of(const AxisPlan& plan) {
  int64_t step = 0;
  for (const int64_t size : plan.check) step = std::gcd(step, size);
  return std::max<int64_t>(step, 1);
}

// Between the least and the largest by the logarithm.
int64_t drawn_size(int64_t least, int64_t largest, std::mt19937_64& random) {
  const double part = static_cast<double>(draw(random, 1 << 20)) / (1 << 20);
  const auto low = static_cast<double>(least), high = static_cast<double>(largest);
  return static_cast<int64_t>(low * std::pow(high / low, part));
}

std::vector<int64_t> rows_of_a_grid(int64_t most) {
  std::set<int64_t> rows;
  for (int64_t power = 1; power <= most; power *= 2)
    for (const int64_t near : {power - 1, power, power + 1})
      if (near >= 1 && near <= most) rows.insert(near);
  return {rows.begin(), rows.end()};
}

bool is_within(const Case& c, bool host) {
  return minimum_bytes(c) <= (host ? kMostBytesOnHost : kMostBytes) &&
         flops_of(c) <= (host ? kMostFlopOnHost : kMostFlop);
}

// Points of one pass in one type, in an order that is drawn.
std::vector<Case> points_of(const ChosenPass& chosen, DType dtype, const CheckRequest& request,
                            uint64_t seed, bool host) {
  const OpSpec& op = *chosen.op;
  std::mt19937_64 random(seed);
  const auto rows = rows_of_a_grid(host ? kMostRowsOnHost : kMostRows);
  std::vector<Shape> shapes;
  for (Shape width : grid_widths(op, seed))
    for (const int64_t count : sizes_of(op.axes.front(), request, rows)) {
      width[op.axes.front().axis.symbol] = count;
      tigon::AxisValues lists;
      for (const AxisPlan& plan : op.axes) {
        const std::vector<int64_t> own = {width.at(plan.axis.symbol)};
        lists.emplace_back(plan.axis.symbol, sizes_of(plan, request, own));
      }
      for (Shape& shape : product(lists)) shapes.push_back(std::move(shape));
    }
  std::sort(shapes.begin(), shapes.end());
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  shuffle(&shapes, random);
  std::vector<Case> points;
  for (const Shape& shape : shapes) {
    Case c = plain_case(chosen, "fused", dtype, request);
    c.axes = shape;
    if (is_within(c, host)) points.push_back(std::move(c));
    if (points.size() == kPointsOfAPass) break;
  }
  return points;
}

}  // namespace

std::vector<Shape> grid_widths(const OpSpec& op, uint64_t seed) {
  std::set<Shape> named;
  for (const TrainedModel& model : trained_models()) {
    const auto sizes = axes_of(model, op);
    if (sizes.empty()) continue;
    for (const Shape& shape : product(tigon::AxisValues(sizes.begin(), sizes.end())))
      named.insert(shape);
  }
  std::vector<Shape> widths(named.begin(), named.end());
  if (widths.empty()) return widths;
  const AxisPlan& last = op.axes.back();
  const std::string& symbol = last.axis.symbol;
  const auto [least, largest] = std::minmax_element(
      widths.begin(), widths.end(),
      [&](const Shape& a, const Shape& b) { return a.at(symbol) < b.at(symbol); });
  const int64_t low = least->at(symbol), high = largest->at(symbol);
  const size_t count = widths.size();
  std::mt19937_64 random(seed);
  for (int i = 0; i < kDrawnWidths; ++i) {
    Shape width = widths[draw(random, count)];
    const int64_t step = i % 2 == 0 ? std::lcm(int64_t{8}, step_of(last)) : step_of(last);
    width[symbol] = std::max(drawn_size(low, high, random) / step * step, step);
    widths.push_back(std::move(width));
  }
  return widths;
}

std::vector<Case> grid_cases(const CheckRequest& request, uint64_t seed, bool host) {
  CheckRequest wanted = request;
  if (wanted.dtypes.empty()) wanted.dtypes = {DType::kBF16};
  std::vector<std::pair<ChosenPass, std::vector<Case>>> passes;
  size_t most = 0;
  for (const ChosenPass& chosen : chosen_passes(wanted))
    for (const DType dtype : chosen_dtypes(chosen.op->policies, wanted)) {
      passes.emplace_back(chosen, points_of(chosen, dtype, wanted, seed, host));
      most = std::max(most, passes.back().second.size());
    }
  std::vector<Case> cases;
  for (size_t i = 0; i < most; ++i)
    for (const auto& [chosen, points] : passes)
      for (const Implementation* each : chosen_implementations(*chosen.pass, wanted, false)) {
        if (i >= points.size() || !is_chosen(each->policies, points[i].dtype)) continue;
        cases.push_back(points[i]);
        cases.back().impl = each->name;
      }
  return cases;
}

}  // namespace tigon::cli
