// SPDX-License-Identifier: Apache-2.0
// What is known of correct kernels beside their verdict: how near they come to their budget, and
// how they compare with the unfused baseline.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "harness/run/check.h"

namespace tigon {

class Json;

// Worst error over budget of every passed case, by op, pass, implementation, dtype and output.
class Headroom {
 public:
  void add(const CheckResult& result);

  struct Row {
    std::string op, pass, impl, output, executor;
    DType dtype = DType::kF32;
    int cases = 0;
    double max = 0, p99 = 0, p50 = 0;
    double rms_max = 0, bias_max = 0;  // largest root mean square over its budget, largest |bias|
    double one_sided_max = 0;          // largest mean error in one direction over its budget
    double target = 0;                 // that max should not exceed
    std::string worst_case;
  };
  // In the order of first appearance.
  std::vector<Row> rows() const;

 private:
  struct Group {
    Row row;
    std::vector<double> errors;
  };
  std::map<std::tuple<std::string, std::string, std::string, DType, std::string, std::string>,
           size_t>
      index_;
  std::vector<Group> groups_;
};
// As in harness/record/record.schema.json, KIND headroom.
Json to_json(const Headroom::Row& row);

// Fills naive_ratio: the largest error of an output over that of the baseline on the same case,
// whose result must have been given before.
class NaiveErrors {
 public:
  void complete(CheckResult* result);
  // The same for a failure; runs the baseline on its case, like the request does, if that was not
  // given. Of the first few failures only.
  void complete_failure(const CheckRequest& like, CheckResult* result);

 private:
  int asked_ = 0;
  std::map<std::string, double> largest_;  // by executor, case without implementation, output
};

// "; y: 12 times the error of naive" for the failing outputs of which it is known.
std::string naive_text(const CheckResult& result);

}  // namespace tigon
