// SPDX-License-Identifier: Apache-2.0
// Which cells a bench measures.
#include "harness/measure/sweep.h"

#include <algorithm>
#include <map>
#include <optional>

#include "harness/run/cases/chosen.h"
#include "harness/run/cases/covering.h"

namespace tigon {
namespace {

const std::vector<int64_t>& sizes_of(const AxisPlan& plan, const CheckRequest& request, bool host) {
  return tigon::sizes_of(plan, request, host ? plan.host_sweep : plan.sweep);
}

std::vector<Shape> shapes_of(const OpSpec& op, const CheckRequest& request, bool host,
                             bool middle_only) {
  AxisValues lists;
  for (const AxisPlan& plan : op.axes) {
    const std::vector<int64_t>& sizes = sizes_of(plan, request, host);
    const bool one = middle_only && !sizes.empty() && request.axes.count(plan.axis.symbol) == 0;
    lists.emplace_back(plan.axis.symbol, one ? std::vector{sizes[sizes.size() / 2]} : sizes);
  }
  return product(lists);
}

// The cell of a shape, with the implementations that have the type; nothing where none has it.
std::optional<Cell> cell_of(const ChosenPass& chosen, DType dtype, const Shape& shape,
                            const CheckRequest& request) {
  std::vector<std::string> names;
  for (const Implementation* i : chosen_implementations(*chosen.pass, request, true))
    if (is_chosen(i->policies, dtype)) names.push_back(i->name);
  if (names.empty()) return std::nullopt;
  Case c = plain_case(chosen, names.front(), dtype, request);
  c.axes = shape;
  return Cell{c, names};
}

std::vector<Cell> pairwise_cells(const ChosenPass& chosen, const CheckRequest& request, bool host) {
  const std::vector<AxisPlan>& axes = chosen.op->axes;
  const std::vector<DType> dtypes = chosen_dtypes(chosen.op->policies, request);
  std::vector<size_t> counts = {dtypes.size()};
  for (const AxisPlan& plan : axes) counts.push_back(sizes_of(plan, request, host).size());
  std::vector<Cell> cells;
  for (const Row& row : pairwise_rows(counts)) {
    Shape shape;
    for (size_t a = 0; a < axes.size(); ++a)
      shape[axes[a].axis.symbol] = sizes_of(axes[a], request, host)[row[a + 1]];
    if (auto cell = cell_of(chosen, dtypes[row[0]], shape, request))
      cells.push_back(std::move(*cell));
  }
  return cells;
}

// The op has one pass for what this one does and its gradients.
bool is_part_of_another(const ChosenPass& chosen) {
  const auto has_both = [](const Pass& pass) { return pass.name == "forward_backward"; };
  return !has_both(*chosen.pass) && std::ranges::any_of(chosen.op->passes, has_both);
}

// Every combination of sizes and types, as far as `size` asks for.
std::vector<Cell> grid_cells(const ChosenPass& chosen, const CheckRequest& request, SweepSize size,
                             bool host) {
  std::vector<Cell> cells;
  const bool quick = size == SweepSize::kQuick || size == SweepSize::kTraining;
  if (size == SweepSize::kTraining && is_part_of_another(chosen)) return cells;
  for (const DType dtype : chosen_dtypes(chosen.op->policies, request)) {
    const bool main_type = !request.dtypes.empty() || dtype == DType::kBF16;
    if (quick && !main_type) continue;
    const bool middle = quick || (size == SweepSize::kDefault && !main_type);
    for (const Shape& shape : shapes_of(*chosen.op, request, host, middle))
      if (auto cell = cell_of(chosen, dtype, shape, request)) cells.push_back(std::move(*cell));
  }
  return cells;
}

// Cells of explicit cases: the same case of several implementations is one cell.
std::vector<Cell> cells_of_cases(const std::vector<Case>& cases) {
  std::vector<Cell> cells;
  std::map<std::string, size_t> known;  // by the case's id without its implementation
  for (const Case& c : cases) {
    Case same = c;
    same.impl.clear();
    const auto [cell, is_new] = known.emplace(case_id(same), cells.size());
    if (is_new)
      cells.push_back({c, {c.impl}});
    else
      cells[cell->second].implementations.push_back(c.impl);
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
  for (const ChosenPass& chosen : chosen_passes(request))
    for (Cell& cell : size == SweepSize::kPairwise ? pairwise_cells(chosen, request, host)
                                                   : grid_cells(chosen, request, size, host))
      cells.push_back(std::move(cell));
  return filtered(cells, request);
}

}  // namespace tigon
