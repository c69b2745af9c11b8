// SPDX-License-Identifier: Apache-2.0
// What of the kernels a plan of cases has met.
#include "harness/run/judging/coverage.h"

#include <fmt/format.h>

#include <regex>

#include "harness/json/json.h"

namespace tigon {
namespace {

// "rms_norm::forward_kernel<Policy<bf16, float>, 8, 256>" -> "rms_norm::forward_kernel<*, 8, 256>"
std::string path_of(const std::string& kernel) {
  static const std::regex kTypes(R"(Policy<[^<>]*>|\b(bf16|f16|float|double)\b)");
  return std::regex_replace(kernel, kTypes, "*");
}

std::vector<std::string> values_of(const Case& c) {
  std::vector<std::string> values = {"inputs=" + c.inputs};
  for (const auto& [name, value] : c.options) values.push_back(name + "=" + value);
  if (c.shift != 0) values.push_back("shift");
  if (c.skew != 0) values.push_back("skew");
  if (c.gap != 0) values.push_back("gap");
  if (!c.property.empty()) values.push_back("prop=" + c.property);
  return values;
}

}  // namespace

void Coverage::add(const CheckResult& result) {
  if (is_skip(result.verdict) || !result.c.impl.starts_with("fused")) return;
  auto& paths = met_[{result.c.op, result.c.pass}];
  for (const std::string& kernel : result.kernels) {
    if (all_.count(kernel) == 0) continue;
    launched_.insert(kernel);
    for (const std::string& value : values_of(result.c)) ++paths[path_of(kernel)][value];
  }
}

std::vector<Coverage::Row> Coverage::rows() const {
  std::map<std::string, Row> by_file;
  std::map<std::string, std::string> file_of_path;
  for (const auto& [kernel, file] : all_) {
    Row& row = by_file[file];
    row.file = file;
    ++row.kernels;
    if (launched_.count(kernel) == 0) row.missing.push_back(kernel);
    if (file_of_path.emplace(path_of(kernel), file).second) ++row.paths;
  }
  for (const auto& [pass, paths] : met_) {
    std::set<std::string> values;
    for (const auto& [path, met] : paths)
      for (const auto& [value, times] : met) values.insert(value);
    for (const auto& [path, met] : paths) {
      Row& row = by_file.at(file_of_path.at(path));
      row.pairs += values.size();
      row.met += met.size();
      for (const std::string& value : values)
        if (met.count(value) == 0)
          row.open.push_back(fmt::format("{} {} {}: {}", pass.first, pass.second, path, value));
    }
  }
  std::vector<Row> rows;
  for (auto& [file, row] : by_file)
    if (row.missing.size() < row.kernels) rows.push_back(std::move(row));
  return rows;
}

Json to_json(const Coverage::Row& row) {
  return {{"file", row.file},   {"kernels", row.kernels}, {"missing", row.missing},
          {"paths", row.paths}, {"pairs", row.pairs},     {"met", row.met},
          {"open", row.open}};
}

}  // namespace tigon
