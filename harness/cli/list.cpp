// tigon list: ops, passes, implementations and dtypes as a table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/commands.h"
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

}  // namespace

void add_list(CLI::App* app, Program*) {
  CLI::App* command = app->add_subcommand("list", "ops, passes, implementations, dtypes, axes");
  command->footer("Example:\n  ./tigon list");
  command->callback([] { print_table(rows_of_all()); });
}

}  // namespace tigon::cli
