// SPDX-License-Identifier: Apache-2.0
// A small part of many cases.
#include "harness/run/cases/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <string>

#include "harness/run/cases/plan.h"
#include "harness/run/inputs/inputs.h"

namespace tigon {
namespace {

// Cases that move more take as long as all others.
constexpr double kMostBytesOfRun = 2 << 20;

std::vector<std::string> kinds_of(const Case& c, InTypes in_types) {
  const std::string kernel = fmt::format("{} {} {} ", c.op, c.pass, c.impl);
  const std::string typed = fmt::format("{}{} ", kernel, name_of(c.dtype));
  if (is_library(c.impl)) {
    std::vector<std::string> kinds = {typed};
    if (in_types == InTypes::kEach) kinds.push_back(kernel + "inputs=" + c.inputs);
    for (const auto& [option, value] : c.options)
      kinds.push_back(fmt::format("{}{}={}", kernel, option, value));
    return kinds;
  }
  const std::string& shared = in_types == InTypes::kEach ? typed : kernel;
  std::vector<std::string> kinds = {typed + "inputs=" + c.inputs, shared + "prop=" + c.property};
  for (const auto& [axis, size] : c.axes)
    kinds.push_back(fmt::format("{}{}={}", kernel, axis, size));
  for (const auto& [option, value] : c.options)
    kinds.push_back(fmt::format("{}{}={}", shared, option, value));
  if (c.shift != 0) kinds.push_back(shared + "shift");
  if (c.skew != 0) kinds.push_back(shared + "skew");
  if (c.launch != 0) kinds.push_back(fmt::format("{}launch={}", shared, c.launch));
  if (c.gap != 0) kinds.push_back(shared + "gap");
  return kinds;
}

struct Candidate {
  size_t gain;     // kinds that were new when it was last looked at
  uint64_t order;  // among those of one gain
  size_t place;    // among the cases
  bool operator<(const Candidate& other) const {
    return gain != other.gain ? gain < other.gain : order > other.order;
  }
};

}  // namespace

std::vector<Case> each_kind_once(const std::vector<Case>& cases, InTypes in_types) {
  std::set<std::string> met;
  std::priority_queue<Candidate> candidates;
  for (size_t i = 0; i < cases.size(); ++i) {
    // In any type: drawn, else all were in the first one.
    const uint64_t order = in_types == InTypes::kEach ? i : stream_key(0, case_id(cases[i]));
    candidates.push({kinds_of(cases[i], in_types).size(), order, i});
  }
  std::vector<size_t> places;
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    const std::vector<std::string> kinds = kinds_of(cases[best.place], in_types);
    const auto gain = static_cast<size_t>(std::count_if(
        kinds.begin(), kinds.end(), [&](const std::string& kind) { return met.count(kind) == 0; }));
    if (gain == 0) continue;
    if (gain < best.gain) {  // others have met some of its kinds
      candidates.push({gain, best.order, best.place});
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
  std::erase_if(
      cases, [](const Case& c) { return has_long_axis(c) || minimum_bytes(c) > kMostBytesOfRun; });
  return each_kind_once(cases, InTypes::kAny);
}

}  // namespace tigon
