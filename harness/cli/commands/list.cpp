// SPDX-License-Identifier: Apache-2.0
// tigon list: ops, passes, implementations and dtypes as a table; list inputs: the catalogue of
// test data and the sets that each op is checked on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/options/models.h"
#include "harness/json/json.h"
#include "harness/run/inputs/distributions.h"
#include "harness/spec/op_spec.h"

namespace tigon::cli {
namespace {

using Row = std::vector<std::string>;

std::string names_of(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (const DType type : types) names.push_back(name_of(type));
  return fmt::format("{}", fmt::join(names, " "));
}

std::vector<Row> rows_of_all() {
  std::vector<Row> rows = {{"op", "pass", "implementation", "dtypes", "axes"}};
  for (const OpSpec& op : all_ops()) {
    Row axes;
    for (const AxisPlan& plan : op.axes) axes.push_back(plan.axis.symbol);
    for (const Pass& pass : op.passes)
      for (const Implementation& i : pass.implementations)
        rows.push_back({op.name, pass.name, i.name, names_of(i.policies),
                        fmt::format("{}", fmt::join(axes, " "))});
  }
  return rows;
}

void print_table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

// "x ~ one_element(value=nan), w ~ normal(mean=1, scale=0.5)"
std::string plans_text(const InputSet& set) {
  std::vector<std::string> plans;
  std::vector<std::string> seen;  // the first plan of a tensor counts
  for (const InputPlan& plan : set.plans) {
    if (std::count(seen.begin(), seen.end(), plan.tensor) > 0) continue;
    seen.push_back(plan.tensor);
    std::vector<std::string> parameters;
    for (const auto& [name, value] : plan.parameters)
      parameters.push_back(fmt::format("{}={:g}", name, value));
    plans.push_back(
        fmt::format("{} ~ {}{}", plan.tensor, plan.distribution,
                    parameters.empty() ? "" : fmt::format("({})", fmt::join(parameters, ", "))));
  }
  return fmt::format("{}", fmt::join(plans, "; "));
}

void print_inputs() {
  fmt::print("distributions (parameter and its default in brackets)\n");
  for (const Distribution& d : all_distributions()) fmt::print("  {:<16} {}\n", d.name, d.meaning);
  for (const OpSpec& op : all_ops()) {
    fmt::print("\n{}: a tensor that is not named is normal\n", op.name);
    for (const InputSet& set : op.inputs)
      fmt::print("  {:<18} {}{}\n", set.name, plans_text(set),
                 set.nonfinite ? "  [fused kernels only]" : "");
  }
}

void print_models() {
  std::vector<Row> rows = {{"model", "layers", "hidden", "heads", "kv heads", "head size", "rotary",
                            "intermediate", "vocabulary", "parameters", "source"}};
  for (const TrainedModel& m : trained_models()) {
    std::string intermediate = std::to_string(m.intermediate);
    if (m.expert_intermediate > 0) intermediate += fmt::format(" ({})", m.expert_intermediate);
    rows.push_back({m.name, std::to_string(m.layers), std::to_string(m.hidden),
                    std::to_string(m.heads), std::to_string(m.kv_heads),
                    std::to_string(m.head_size), std::to_string(m.rotary), intermediate,
                    std::to_string(m.vocabulary), fmt::format("{:.4g}e9", m.billions), m.source});
  }
  print_table(rows);
  fmt::print("intermediate size of an expert in brackets\n");
}

void print_models_as_json() {
  Json models = Json::array();
  for (const TrainedModel& m : trained_models())
    models.push_back({{"name", m.name},
                      {"layers", m.layers},
                      {"hidden", m.hidden},
                      {"heads", m.heads},
                      {"kv_heads", m.kv_heads},
                      {"head_size", m.head_size},
                      {"rotary", m.rotary},
                      {"intermediate", m.intermediate},
                      {"expert_intermediate", m.expert_intermediate},
                      {"vocabulary", m.vocabulary},
                      {"parameters", m.billions * 1e9},
                      {"source", m.source}});
  fmt::print("{}\n", Json{{"models", models}}.dump(1));
}

}  // namespace

void add_list(Command command, Program*) {
  command.footer(
      "Examples:\n  ./tigon list\n  ./tigon list inputs     the catalogue of test data\n"
      "  ./tigon list models     sizes of models that people train, for --model");
  Command inputs = command.add_command("inputs", "distributions and input sets of every op");
  Command models = command.add_command("models", "what --model knows");
  const auto json = std::make_shared<bool>(false);
  models.flag("--json", json.get(), "as JSON");
  command.run([inputs, models, json] {
    if (inputs.parsed())
      print_inputs();
    else if (models.parsed())
      *json ? print_models_as_json() : print_models();
    else
      print_table(rows_of_all());
  });
}

}  // namespace tigon::cli
