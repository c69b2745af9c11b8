// Which cells a bench measures.
#include "harness/measure/sweep.h"

#include <algorithm>

#include "harness/run/cases/covering.h"

namespace tigon {
namespace {

using Shape = std::map<std::string, int64_t>;

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

// Every combination of the values.
std::vector<Shape> product(const OpSpec& op,
                           const std::function<std::vector<int64_t>(const AxisPlan&)>& values) {
  std::vector<Shape> shapes = {{}};
  for (const AxisPlan& plan : op.axes) {
    std::vector<Shape> longer;
    for (const Shape& shape : shapes)
      for (const int64_t value : values(plan)) {
        longer.push_back(shape);
        longer.back()[plan.axis.symbol] = value;
      }
    shapes = std::move(longer);
  }
  return shapes;
}

std::vector<Shape> shapes_of(const OpSpec& op, const CheckRequest& request, bool host,
                             bool middle_only) {
  return product(op, [&](const AxisPlan& plan) -> std::vector<int64_t> {
    if (const auto given = request.axes.find(plan.axis.symbol); given != request.axes.end())
      return given->second;
    const std::vector<int64_t>& sweep = host ? plan.host_sweep : plan.sweep;
    if (middle_only && !sweep.empty()) return {sweep[sweep.size() / 2]};
    return sweep;
  });
}

std::vector<std::string> implementations_for(const Pass& pass, DType dtype,
                                             const CheckRequest& request) {
  std::vector<std::string> names;
  for (const Implementation& i : pass.implementations)
    if (is_selected(i, request.implementations) &&
        std::find(i.policies.begin(), i.policies.end(), dtype) != i.policies.end())
      names.push_back(i.name);
  return names;
}

std::vector<Cell> pairwise_cells(const OpSpec& op, const Pass& pass, const CheckRequest& request,
                                 bool host) {
  std::vector<DType> dtypes;
  for (const DType dtype : op.policies)
    if (request.dtypes.empty() ||
        std::find(request.dtypes.begin(), request.dtypes.end(), dtype) != request.dtypes.end())
      dtypes.push_back(dtype);
  std::vector<std::vector<int64_t>> values;
  std::vector<size_t> sizes = {dtypes.size()};
  for (const AxisPlan& plan : op.axes) {
    const auto given = request.axes.find(plan.axis.symbol);
    values.push_back(given != request.axes.end() ? given->second
                     : host                      ? plan.host_sweep
                                                 : plan.sweep);
    sizes.push_back(values.back().size());
  }
  std::vector<Cell> cells;
  for (const Row& row : pairwise_rows(sizes)) {
    Case c;
    c.op = op.name;
    c.pass = pass.name;
    c.dtype = dtypes[row[0]];
    for (size_t a = 0; a < values.size(); ++a)
      c.axes[op.axes[a].axis.symbol] = values[a][row[a + 1]];
    c.inputs = op.inputs.front().name;
    c.seed = request.seed;
    const auto names = implementations_for(pass, c.dtype, request);
    if (names.empty()) continue;
    c.impl = names.front();
    cells.push_back({c, names});
  }
  return cells;
}

// Cells of explicit cases: the same case of several implementations is one cell.
std::vector<Cell> cells_of_cases(const std::vector<Case>& cases) {
  std::vector<Cell> cells;
  for (const Case& c : cases) {
    Case same = c;
    const auto cell = std::find_if(cells.begin(), cells.end(), [&](const Cell& other) {
      same.impl = other.c.impl;
      return case_id(same) == case_id(other.c);
    });
    if (cell == cells.end())
      cells.push_back({c, {c.impl}});
    else
      cell->implementations.push_back(c.impl);
  }
  return cells;
}

// The filter and the shard are over the ids of single cases: a cell keeps the implementations that
// pass.
std::vector<Cell> filtered(const std::vector<Cell>& cells, const CheckRequest& request) {
  CheckRequest exact = request;
  exact.cases.clear();
  for (const Cell& cell : cells)
    for (const std::string& name : cell.implementations) {
      exact.cases.push_back(cell.c);
      exact.cases.back().impl = name;
    }
  if (exact.cases.empty()) return {};
  return cells_of_cases(select_cases(exact));
}

}  // namespace

std::vector<Cell> sweep_cells(const CheckRequest& request, SweepSize size, bool host) {
  std::vector<Cell> cells = cells_of_cases(request.cases);
  if (!cells.empty()) return filtered(cells, request);
  for (const OpSpec& op : all_ops()) {
    if (!wanted(request.ops, op.name)) continue;
    for (const Pass& pass : op.passes) {
      if (!wanted(request.passes, pass.name)) continue;
      if (size == SweepSize::kPairwise) {
        for (Cell& cell : pairwise_cells(op, pass, request, host)) cells.push_back(std::move(cell));
        continue;
      }
      for (const DType dtype : op.policies) {
        const bool asked =
            std::find(request.dtypes.begin(), request.dtypes.end(), dtype) != request.dtypes.end();
        if (!request.dtypes.empty() && !asked) continue;
        const bool main_type = asked || dtype == DType::kBF16;
        if (size == SweepSize::kQuick && !main_type) continue;
        const bool middle =
            size == SweepSize::kQuick || (size == SweepSize::kDefault && !main_type);
        const auto names = implementations_for(pass, dtype, request);
        if (names.empty()) continue;
        for (const Shape& shape : shapes_of(op, request, host, middle)) {
          Case c;
          c.op = op.name;
          c.pass = pass.name;
          c.impl = names.front();
          c.dtype = dtype;
          c.axes = shape;
          c.inputs = op.inputs.front().name;
          c.seed = request.seed;
          cells.push_back({c, names});
        }
      }
    }
  }
  return filtered(cells, request);
}

}  // namespace tigon
