// SPDX-License-Identifier: Apache-2.0
// What of the kernels a plan of cases has met, on the host executor: every kernel that was
// compiled, and on each path of a pass every value that another path of it met.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/run/check.h"

namespace tigon {

class Json;

// A path is a kernel whatever its element type: its name, with its width, threads and stages, but
// without its types. A value is an option's, a tensor that is left out, an input set, a layout or
// a property.
class Coverage {
 public:
  // `all`: the kernels that there are, by name: file.
  explicit Coverage(std::map<std::string, std::string> all) : all_(std::move(all)) {}

  // Of our kernels only; a case that was skipped meets nothing.
  void add(const CheckResult& result);

  struct Row {
    std::string file;
    size_t kernels = 0, paths = 0, pairs = 0, met = 0;
    std::vector<std::string> missing;  // kernels that no case launched
    std::vector<std::string> open;     // "path: value" that did not meet
  };
  // By file of kernels, where any was launched.
  std::vector<Row> rows() const;

 private:
  using Values = std::map<std::string, size_t>;  // with how often each was met
  // By op, pass and path.
  std::map<std::pair<std::string, std::string>, std::map<std::string, Values>> met_;
  std::map<std::string, std::string> all_;
  std::set<std::string> launched_;
};

// As in harness/record/record.schema.json, KIND coverage.
Json to_json(const Coverage::Row& row);

}  // namespace tigon
