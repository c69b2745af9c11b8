// SPDX-License-Identifier: Apache-2.0
// What of the kernels a plan of cases has met, on the host executor: every kernel that was
// compiled, and on each path of a pass every value that it must meet (demand.h).
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/run/check.h"
#include "harness/run/judging/demand.h"

namespace tigon {

class Json;

class Coverage {
 public:
  // `all`: the kernels that there are, by name: file. `launches`: asked for what can be met.
  Coverage(std::map<std::string, std::string> all, Launches launches)
      : all_(std::move(all)), launches_(std::move(launches)) {}

  // Of our kernels only; a case that was skipped meets nothing.
  void add(const CheckResult& result);

  struct Row {
    std::string file;
    size_t kernels = 0, paths = 0, pairs = 0, met = 0;
    std::vector<std::string> missing;  // kernels that no case launched
    std::vector<std::string> open;     // "op pass path: value" that must be met and was not
    std::map<std::string, std::vector<std::string>> ruled_out;  // those that cannot, by the rule
  };
  // By file of kernels, where any was launched.
  std::vector<Row> rows() const;

 private:
  struct OfPass {
    std::vector<Case> cases;
    Demand::Pairs met;
    std::vector<Case> tried;  // of properties
  };
  using ByFile = std::map<std::string, Row>;
  ByFile kernels() const;
  void add_pairs(const std::string& pass, const OfPass& of, const Demand& demand,
                 const std::map<std::string, std::string>& files, ByFile* rows) const;

  std::map<std::string, std::string> all_;
  Launches launches_;
  std::map<std::string, OfPass> passes_;  // by "op pass"
  std::set<std::string> launched_;
};

// As in harness/record/record.schema.json, KIND coverage.
Json to_json(const Coverage::Row& row);

}  // namespace tigon
