// SPDX-License-Identifier: Apache-2.0
// What the cases that fail have in common and those that pass have not.
#include "harness/cli/options/case_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

namespace tigon::cli {
namespace {

constexpr int64_t kMostMultiple = 1024;  // the widest tile of a kernel
constexpr size_t kShownValues = 6;       // shown

struct Condition {
  std::string text;
  std::function<bool(const Case&)> met;
  std::string axis = {};  // whose sizes are shown; empty for a word
};

std::string option_of(const Case& c, const std::string& name) {
  const auto found = c.options.find(name);
  return found == c.options.end() ? "" : found->second;  // the default
}

// Words of one case: what another may have, too.
std::vector<Condition> words_of(const Case& c) {
  std::vector<Condition> found = {
      {std::string(name_of(c.dtype)), [d = c.dtype](const Case& o) { return o.dtype == d; }},
      {"inputs=" + c.inputs, [i = c.inputs](const Case& o) { return o.inputs == i; }}};
  for (const auto& [name, value] : c.options)
    found.push_back({fmt::format("{}={}", name, value),
                     [n = name, v = value](const Case& o) { return option_of(o, n) == v; }});
  if (c.shift != 0) found.push_back({"a shift", [](const Case& o) { return o.shift != 0; }});
  if (c.skew != 0) found.push_back({"a skew", [](const Case& o) { return o.skew != 0; }});
  if (c.gap != 0) found.push_back({"a gap", [](const Case& o) { return o.gap != 0; }});
  return found;
}

// Conditions on one axis; of two that tell the same apart the first is taken.
std::vector<Condition> sizes_of(const std::string& axis, const std::set<int64_t>& values) {
  std::vector<Condition> found;
  const auto size = [axis](const Case& c) { return c.axes.at(axis); };
  for (int64_t m = kMostMultiple; m > 1; m /= 2)
    found.push_back({fmt::format("{} is no multiple of {}", axis, m),
                     [=](const Case& c) { return size(c) % m != 0; }, axis});
  for (const int64_t v : values) {
    found.push_back(
        {fmt::format("{} > {}", axis, v), [=](const Case& c) { return size(c) > v; }, axis});
    found.push_back(
        {fmt::format("{} < {}", axis, v), [=](const Case& c) { return size(c) < v; }, axis});
  }
  return found;
}

std::string sizes_text(const std::vector<JudgedCase>& cases, const std::string& axis, bool failed) {
  std::set<int64_t> values;
  for (const JudgedCase& j : cases)
    if (j.failed == failed) values.insert(j.c.axes.at(axis));
  const size_t shown = std::min(values.size(), kShownValues);
  return fmt::format("{}{}", fmt::join(values.begin(), std::next(values.begin(), shown), ", "),
                     shown < values.size() ? ", ..." : "");
}

}  // namespace

std::string case_pattern(const std::vector<JudgedCase>& all) {
  std::vector<JudgedCase> cases;
  const auto is_empty = [](const auto& axis) { return axis.second == 0; };
  for (const JudgedCase& j : all)  // with nothing to compute nothing can fail
    if (j.c.property.empty() && std::none_of(j.c.axes.begin(), j.c.axes.end(), is_empty))
      cases.push_back(j);
  const auto first = std::find_if(cases.begin(), cases.end(), [](auto& j) { return j.failed; });
  const auto failed = std::count_if(cases.begin(), cases.end(), [](auto& j) { return j.failed; });
  const auto passed = static_cast<int64_t>(cases.size()) - failed;
  if (failed < 2 || passed < 2) return {};
  std::vector<Condition> conditions = words_of(first->c);
  for (const auto& [axis, size] : first->c.axes) {
    std::set<int64_t> values;
    for (const JudgedCase& j : cases) values.insert(j.c.axes.at(axis));
    for (Condition& one : sizes_of(axis, values)) conditions.push_back(std::move(one));
  }
  const Condition* best = nullptr;
  int64_t fewest = passed / 2;  // passed cases that meet it
  for (const Condition& one : conditions) {
    int64_t passed_too = 0;
    bool all_failed = true;
    for (const JudgedCase& j : cases)
      if (!one.met(j.c))
        all_failed = all_failed && !j.failed;
      else if (!j.failed)
        ++passed_too;
    if (!all_failed || passed_too >= fewest) continue;
    best = &one;
    fewest = passed_too;
  }
  if (best == nullptr) return {};
  std::string text = best->text;
  if (!best->axis.empty())
    text += fmt::format(" ({}; right at {})", sizes_text(cases, best->axis, true),
                        sizes_text(cases, best->axis, false));
  if (fewest > 0) text += fmt::format(", as in {} of {} that pass", fewest, passed);
  return text;
}

}  // namespace tigon::cli
