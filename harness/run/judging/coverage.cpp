// SPDX-License-Identifier: Apache-2.0
// What of the kernels a plan of cases has met.
#include "harness/run/judging/coverage.h"

#include <fmt/format.h>

#include "harness/json/json.h"

namespace tigon {
namespace {

constexpr char kElsewhere[] =
    "another op's pass of this name, or the forward pass that ranks run first, runs the kernel on "
    "its inputs";
constexpr char kTried[] = "the property was tried, and makes no call that takes the path";

bool has_products(const std::string& op, const std::string& pass) {
  return !find_pass(*find_op(op), pass)->products.empty();
}

// By "op pass".
void leave_to_others(std::map<std::string, Demand>* demands) {
  const auto split = [](const std::string& key) {
    const size_t space = key.find(' ');
    return std::pair(key.substr(0, space), key.substr(space + 1));
  };
  std::map<std::string, std::set<std::string>> on_inputs;  // paths by the pass' name
  for (const auto& [key, demand] : *demands) {
    const auto [op, pass] = split(key);
    if (has_products(op, pass)) continue;
    for (const auto& [path, values] : demand.met) on_inputs[pass].insert(path);
  }
  for (auto& [key, demand] : *demands) {
    const auto [op, pass] = split(key);
    if (!has_products(op, pass)) continue;
    std::set<std::string> elsewhere = on_inputs[pass];
    if (is_over_ranks(*find_pass(*find_op(op), pass)))
      elsewhere.merge(std::set(on_inputs["forward"]));
    for (const std::string& path : elsewhere)
      if (auto found = demand.met.extract(path); !found.empty())
        demand.ruled_out[kElsewhere][path] = std::move(found.mapped());
  }
}

}  // namespace

void Coverage::add(const CheckResult& result) {
  if (all_.empty() || !result.c.impl.starts_with("fused")) return;
  OfPass& of = passes_[result.c.op + " " + result.c.pass];
  of.cases.push_back(result.c);
  if (!result.c.property.empty()) of.tried.push_back(result.c);
  if (is_skip(result.verdict)) return;
  const std::vector<std::string> values = values_of(result.c);
  for (const std::string& kernel : result.kernels) {
    if (all_.count(kernel) == 0) continue;
    launched_.insert(kernel);
    of.met[path_of(kernel)].insert(values.begin(), values.end());
  }
}

Coverage::ByFile Coverage::kernels() const {
  ByFile rows;
  std::set<std::string> paths;
  for (const auto& [kernel, file] : all_) {
    Row& row = rows[file];
    row.file = file;
    ++row.kernels;
    if (launched_.count(kernel) == 0) row.missing.push_back(kernel);
    if (paths.insert(path_of(kernel)).second) ++row.paths;
  }
  return rows;
}

void Coverage::add_pairs(const std::string& pass, const OfPass& of, const Demand& demand,
                         const std::map<std::string, std::string>& files, ByFile* rows) const {
  const auto row_of = [&](const std::string& path) {
    const auto file = files.find(path);
    return file == files.end() ? nullptr : &rows->at(file->second);
  };
  const auto name_of = [&](const std::string& path, const std::string& value) {
    return fmt::format("{} {}: {}", pass, path, value);
  };
  std::set<std::pair<std::string, std::string>> tried;
  for (const Case& c : of.tried)
    for (const std::string& kernel : launches_(c))
      tried.insert({path_of(kernel), "prop=" + c.property});
  for (const auto& [path, values] : demand.met) {
    Row* const row = row_of(path);
    if (row == nullptr) continue;
    const auto met = of.met.find(path);
    for (const std::string& value : values) {
      const bool is_met = met != of.met.end() && met->second.count(value) > 0;
      if (!is_met && tried.count({path, value}) > 0) {
        row->ruled_out[kTried].push_back(name_of(path, value));
        continue;
      }
      ++row->pairs;
      if (is_met)
        ++row->met;
      else
        row->open.push_back(name_of(path, value));
    }
  }
  for (const auto& [rule, pairs] : demand.ruled_out)
    for (const auto& [path, values] : pairs)
      for (const std::string& value : values)
        if (Row* const row = row_of(path)) row->ruled_out[rule].push_back(name_of(path, value));
}

std::vector<Coverage::Row> Coverage::rows() const {
  ByFile by_file = kernels();
  std::map<std::string, std::string> files;  // of paths
  for (const auto& [kernel, file] : all_) files[path_of(kernel)] = file;
  std::map<std::string, Demand> demands;
  for (const auto& [pass, of] : passes_) demands[pass] = demand_of(of.cases, launches_);
  leave_to_others(&demands);
  for (const auto& [pass, of] : passes_) add_pairs(pass, of, demands.at(pass), files, &by_file);
  std::vector<Row> rows;
  for (auto& [file, row] : by_file)
    if (row.missing.size() < row.kernels) rows.push_back(std::move(row));
  return rows;
}

Json to_json(const Coverage::Row& row) {
  Json ruled_out = Json::array();
  for (const auto& [rule, pairs] : row.ruled_out)
    ruled_out.push_back({{"rule", rule}, {"pairs", pairs}});
  return {{"file", row.file},   {"kernels", row.kernels}, {"missing", row.missing},
          {"paths", row.paths}, {"pairs", row.pairs},     {"met", row.met},
          {"open", row.open},   {"ruled_out", ruled_out}};
}

}  // namespace tigon
