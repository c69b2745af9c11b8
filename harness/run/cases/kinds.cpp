// SPDX-License-Identifier: Apache-2.0
// A small part of many cases.
#include "harness/run/cases/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <string>

#include "harness/run/cases/plan.h"

namespace tigon {
namespace {

std::vector<std::string> kinds_of(const Case& c) {
  const std::string kernel = fmt::format("{} {} {} ", c.op, c.pass, c.impl);
  const std::string typed = fmt::format("{}{} ", kernel, name_of(c.dtype));
  if (is_library(c.impl)) {
    std::vector<std::string> kinds = {typed, kernel + "inputs=" + c.inputs};
    for (const auto& [option, value] : c.options)
      kinds.push_back(fmt::format("{}{}={}", kernel, option, value));
    return kinds;
  }
  std::vector<std::string> kinds = {typed + "inputs=" + c.inputs, typed + "prop=" + c.property};
  for (const auto& [axis, size] : c.axes)
    kinds.push_back(fmt::format("{}{}={}", kernel, axis, size));
  for (const auto& [option, value] : c.options)
    kinds.push_back(fmt::format("{}{}={}", typed, option, value));
  if (c.shift != 0) kinds.push_back(typed + "shift");
  if (c.skew != 0) kinds.push_back(typed + "skew");
  if (c.launch != 0) kinds.push_back(fmt::format("{}launch={}", typed, c.launch));
  if (c.gap != 0) kinds.push_back(typed + "gap");
  return kinds;
}

struct Candidate {
  size_t gain;   // kinds that were new when it was last looked at
  size_t place;  // among the cases
  bool operator<(const Candidate& other) const {
    return gain != other.gain ? gain < other.gain : place > other.place;
  }
};

}  // namespace

std::vector<Case> each_kind_once(const std::vector<Case>& cases) {
  std::set<std::string> met;
  std::priority_queue<Candidate> candidates;
  for (size_t i = 0; i < cases.size(); ++i) candidates.push({kinds_of(cases[i]).size(), i});
  std::vector<size_t> places;
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    const std::vector<std::string> kinds = kinds_of(cases[best.place]);
    const auto gain = static_cast<size_t>(std::count_if(
        kinds.begin(), kinds.end(), [&](const std::string& kind) { return met.count(kind) == 0; }));
    if (gain == 0) continue;
    if (gain < best.gain) {  // others have met some of its kinds
      candidates.push({gain, best.place});
      continue;
    }
    met.insert(kinds.begin(), kinds.end());
    places.push_back(best.place);
  }
  std::sort(places.begin(), places.end());
  std::vector<Case> part;
  for (const size_t place : places) part.push_back(cases[place]);
  return part;
}

std::vector<Case> part_of_run(std::vector<Case> cases) {
  std::erase_if(cases, has_long_axis);
  return each_kind_once(cases);
}

}  // namespace tigon
