// SPDX-License-Identifier: Apache-2.0
// Why does it fail? The first failing case of each op, pass and implementation is looked at again,
// in child processes of its own: the smallest case that fails the same way, whether other seeds
// fail, and what explain.h sees. Bounded in time.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/run/cases/shrink.h"
#include "harness/run/check.h"

namespace tigon {

class Json;

struct Diagnosis {
  Shrunk shrunk;
  CheckResult smallest;            // of the smallest case
  std::vector<std::string> facts;  // short sentences
  double seconds = 0;
};
// For the record of the check.
Json to_json(const Diagnosis& diagnosis);

class Diagnoser {
 public:
  // `seconds`: the most that one diagnosis takes; 0 makes none.
  Diagnoser(double seconds, double total_seconds) : each_(seconds), remaining_(total_seconds) {}

  // Nothing when the result is no failure, nothing can be learnt (a time-out, no memory), another
  // case of its kind has been looked at or the time is spent. `like`: plug-in and time limit.
  std::optional<Diagnosis> look_at(const CheckResult& failure, const CheckRequest& like);

 private:
  double each_, remaining_;
  std::set<std::string> seen_;
};

}  // namespace tigon
