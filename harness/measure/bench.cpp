// SPDX-License-Identifier: Apache-2.0
// A whole bench.
#include "harness/measure/bench.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>

#include "harness/measure/ceilings.h"
#include "harness/measure/measure_cell.h"
#include "harness/measure/run_in_child.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

constexpr double kCellSilenceS = 120;  // the slowest cell fills gigabytes and times five calls

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

StoppingRule rule_of(const BenchRequest& request) {
  StoppingRule rule;
  if (!on_gpu()) rule = {.warm_up = 1, .least = 5, .most = 100, .seconds = 0.1, .agreement = 0.02};
  if (request.seconds_per_cell > 0) rule.seconds = request.seconds_per_cell;
  if (request.samples > 0) rule.least = rule.most = static_cast<size_t>(request.samples);
  return rule;
}

Ceilings ceilings_of_this_run(const BenchObserver& observer) {
  Ceilings ceilings;
  if (!on_gpu()) return ceilings;
  const WorkerEnd end = run_in_child(
      [](const Emit& emit) {
        for (const auto& [name, value] : measure_ceilings())
          emit({{"name", name},
                {"value", value},
                {"unit", is_bandwidth(name) ? "bytes_per_s" : "flop_per_s"}});
      },
      [&](const Json& line) {
        ceilings[line["name"]] = line["value"];
        observer.on_record("ceiling", line);
      },
      kCellSilenceS);
  if (end.kind != WorkerEnd::kDone && end.kind != WorkerEnd::kInterrupted)
    throw DeviceError("ceilings: " + end.reason);
  return ceilings;
}

const char* verdict_of(WorkerEnd::Kind kind) {
  switch (kind) {
    case WorkerEnd::kCrashed:
      return "crashed";
    case WorkerEnd::kTimeout:
      return "timeout";
    default:
      return "runtime_error";
  }
}

// Cells first, first + 1, ... in one child; returns the first that is still to do. When the child
// ends early, the cell at hand is recorded as what happened to it.
size_t measure_from(size_t first, const std::vector<Cell>& cells, const Ceilings& ceilings,
                    const BenchRequest& request, const BenchObserver& observer, double end_s) {
  const double silence = request.select.timeout_s > 0 ? request.select.timeout_s : kCellSilenceS;
  size_t done = first;
  const WorkerEnd end = run_in_child(
      [&](const Emit& emit) {
        for (size_t i = first; i < cells.size() && now_s() < end_s; ++i) {
          if (request.measure)
            request.measure(cells[i], ceilings, rule_of(request), emit);
          else
            measure_cell(cells[i], ceilings, rule_of(request), emit, request.bases);
          emit({{"cell", i}});
        }
      },
      [&](const Json& line) {
        if (line.contains("record")) {
          observer.on_record(line["record"], line["fields"]);
          return;
        }
        if (!line.contains("cell")) return;  // a sign of life
        done = line["cell"].get<size_t>() + 1;
        observer.on_cell(case_id(cells[done - 1].c), static_cast<int>(cells.size()));
      },
      silence);
  if (end.kind == WorkerEnd::kDone || end.kind == WorkerEnd::kInterrupted || done >= cells.size())
    return cells.size();
  for (const std::string& name : cells[done].implementations) {
    Case c = cells[done].c;
    c.impl = name;
    observer.on_record("bench",
                       bench_without_samples(c, main_basis(), verdict_of(end.kind), end.reason));
  }
  observer.on_cell(case_id(cells[done].c), static_cast<int>(cells.size()));
  return done + 1;
}

// Counted traffic of the kernels: what a machine without a GPU can say about their speed.
void trace_cells(const std::vector<Cell>& cells, const BenchRequest& request,
                 const BenchObserver& observer, double end_s) {
  for (const Cell& cell : cells)
    for (const std::string& name : cell.implementations) {
      // Eigen on the host, another process: nothing that the executor could count.
      const Pass& pass = *find_pass(*find_op(cell.c.op), cell.c.pass);
      const Implementation& implementation = *find_implementation(pass, name);
      if (is_library(implementation) || implementation.on_own_stream) continue;
      if (interrupted() || now_s() > end_s) return;
      Case c = cell.c;
      c.impl = name;
      if (request.is_recorded && request.is_recorded("trace", case_id(c))) continue;
      observer.on_record("trace", to_json(run_trace(c, request.select.timeout_s)));
    }
}

}  // namespace

void run_bench(const BenchRequest& request, const BenchObserver& observer) {
  const double end_s =
      request.budget_s > 0 ? now_s() + request.budget_s : std::numeric_limits<double>::infinity();
  const std::vector<Cell> all = sweep_cells(request.select, request.size, !on_gpu());
  std::vector<Cell> cells = all;
  if (request.is_recorded)
    std::erase_if(cells,
                  [&](const Cell& cell) { return request.is_recorded("bench", case_id(cell.c)); });
  const bool wanted = request.ceilings && !cells.empty();
  const Ceilings ceilings = wanted ? ceilings_of_this_run(observer) : Ceilings();
  for (size_t next = 0; next < cells.size() && !interrupted();)
    next = measure_from(next, cells, ceilings, request, observer, end_s);
  if (!on_gpu()) trace_cells(all, request, observer, end_s);
}

}  // namespace tigon
