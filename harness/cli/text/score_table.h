// SPDX-License-Identifier: Apache-2.0
// The score of planted faults.
#pragma once
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "harness/mutants/external.h"
#include "harness/mutants/score.h"

namespace tigon::cli {

// Caught of planted, and what is listed beside it.
class ScoreTable {
 public:
  void add(const MutantResult& r);
  void add(const ExternalResult& r);
  void print() const;
  // Whether at least so many percent were caught, and `failed`, what counts as a failure, is no
  // more than those that survived.
  bool is_enough(int percent, int failed) const;

 private:
  struct Score {
    int caught = 0, planted = 0;
    void add(bool is_caught) {
      caught += is_caught;
      ++planted;
    }
    std::string text() const { return planted == 0 ? "-" : fmt::format("{}/{}", caught, planted); }
  };

  std::map<std::pair<std::string, std::string>, std::map<std::string, Score>> by_op_;
  std::map<std::pair<std::string, std::string>, Score> by_group_;  // and op of sampled ones
  std::map<std::pair<std::string, std::string>, std::set<std::string>> excused_;
  std::map<std::string, std::set<std::string>> not_run_;
  Score total_;
  int survived_ = 0;
};

}  // namespace tigon::cli
