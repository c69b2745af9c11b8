// SPDX-License-Identifier: Apache-2.0
// The grammar of -a/--axis.
#include "harness/cli/options/axis_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "harness/judge/verdict.h"
#include "harness/run/cases/chosen.h"

namespace tigon::cli {
namespace {

constexpr const char* kForms = "write T=128, T=[128,256], T=[128:1024:128] or T[pow2]=[7:10]";
constexpr int64_t kLeastMemory = int64_t{1} << 20;  // of less the unit was forgotten
constexpr size_t kMostValues = 4096;                // of one axis; more is a slip of the keyboard

[[noreturn]] void fail(std::string_view axis, const std::string& what) {
  throw UsageError(fmt::format("-a {}: {}", axis, what));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at; (at = text.find(separator)) != std::string_view::npos; text.remove_prefix(at + 1))
    parts.push_back(text.substr(0, at));
  parts.push_back(text);
  return parts;
}

struct Suffix {
  const char* text;
  int64_t factor;
};
constexpr Suffix kSuffixes[] = {{"Ki", int64_t{1} << 10},
                                {"Mi", int64_t{1} << 20},
                                {"Gi", int64_t{1} << 30},
                                {"k", 1000},
                                {"K", 1000},
                                {"M", 1000000},
                                {"G", 1000000000}};

// One item of a list: a size or a range of sizes.
std::vector<int64_t> parse_item(std::string_view item, std::string_view argument) {
  const auto parts = split(item, ':');
  if (parts.size() > 3) fail(argument, fmt::format("'{}' has too many colons; {}", item, kForms));
  const int64_t first = parse_size(parts[0]);
  if (parts.size() == 1) return {first};
  const int64_t last = parse_size(parts[1]);
  const int64_t stride = parts.size() == 3 ? parse_size(parts[2]) : 1;
  if (stride == 0)
    fail(argument, fmt::format("the stride of '{}' is 0; it must be 1 or more", item));
  if (last < first)
    fail(argument, fmt::format("'{}' ends before it starts; write start:stop:stride", item));
  if (static_cast<size_t>((last - first) / stride) >= kMostValues)
    fail(argument,
         fmt::format("'{}' has more than {} values; use a larger stride", item, kMostValues));
  std::vector<int64_t> values;
  for (int64_t v = first; v <= last; v += stride) values.push_back(v);
  return values;
}

int64_t power_of_two(int64_t exponent, std::string_view argument) {
  if (exponent > 40) fail(argument, fmt::format("2^{} is too large; exponents go to 40", exponent));
  return int64_t{1} << exponent;
}

}  // namespace

int64_t parse_size(std::string_view text) {
  if (text.empty()) throw UsageError(fmt::format("a size is missing; {}", kForms));
  if (text[0] == '-') throw UsageError(fmt::format("'{}': {}", text, kSizesAre));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  int64_t factor = rest.empty() ? 1 : 0;
  for (const Suffix& suffix : kSuffixes)
    if (rest == suffix.text) factor = suffix.factor;
  if (error == std::errc::invalid_argument || factor == 0)
    throw UsageError(fmt::format(
        "'{}' is not a size; write digits, with k, M, G (1000) or Ki, Mi, Gi (1024)", text));
  if (error == std::errc::result_out_of_range ||
      value > std::numeric_limits<int64_t>::max() / 2 / factor)
    throw UsageError(fmt::format("size {} is too large", text));
  return value * factor;
}

AxisValues parse_axis_values(std::string_view text) {
  const size_t equals = text.find('=');
  std::string_view name = text.substr(0, equals);
  if (equals == std::string_view::npos || name.empty())
    fail(text, fmt::format("not an axis and its values; {}", kForms));
  bool pow2 = false;
  if (const size_t bracket = name.find('['); bracket != std::string_view::npos) {
    const std::string_view kind = name.substr(bracket);
    if (kind != "[pow2]") fail(text, fmt::format("'{}' is not known; {}", kind, kForms));
    pow2 = true;
    name = name.substr(0, bracket);
    if (name.empty()) fail(text, fmt::format("not an axis and its values; {}", kForms));
  }
  std::string_view list = text.substr(equals + 1);
  const bool opens = !list.empty() && list.front() == '[';
  const bool closes = !list.empty() && list.back() == ']';
  if (opens != closes || (opens && list.size() == 1))
    fail(text, fmt::format("a bracket is missing; {}", kForms));
  if (opens) list = list.substr(1, list.size() - 2);
  if (list.empty()) fail(text, fmt::format("no value is given; {}", kForms));

  AxisValues result{std::string(name), {}};
  try {
    for (const std::string_view item : split(list, ','))
      for (int64_t value : parse_item(item, text)) {
        if (pow2) value = power_of_two(value, text);
        auto& values = result.values;
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      }
  } catch (const UsageError& error) {
    const std::string what = error.what();
    if (what.rfind("-a ", 0) == 0) throw;
    fail(text, what);
  }
  return result;
}

int64_t parse_memory(const std::string& text) {
  std::string size = text;
  if (size.ends_with('B')) size.pop_back();
  int64_t bytes = 0;
  try {
    bytes = parse_size(size);
  } catch (const UsageError&) {
  }
  if (bytes < kLeastMemory)
    throw UsageError(fmt::format("--memory {}: write a size, e.g. 80GiB or 80G", text));
  return bytes;
}

std::map<std::string, std::vector<int64_t>> parse_axes(const std::vector<std::string>& arguments,
                                                       const std::vector<std::string>& known,
                                                       const std::string& owner) {
  std::map<std::string, std::vector<int64_t>> axes;
  for (const std::string& argument : arguments) {
    AxisValues given = parse_axis_values(argument);
    if (std::find(known.begin(), known.end(), given.axis) == known.end())
      fail(argument, fmt::format("{} has no axis '{}'; its axes are {}", owner, given.axis,
                                 fmt::join(known, ", ")));
    if (!axes.emplace(given.axis, std::move(given.values)).second)
      fail(argument,
           fmt::format("axis {} is given twice; write its values in one list", given.axis));
  }
  return axes;
}

std::map<std::string, std::vector<int64_t>> parse_axes(const std::vector<std::string>& arguments,
                                                       const std::vector<const OpSpec*>& ops) {
  std::vector<std::string> known;
  for (const OpSpec* op : ops)
    for (const AxisPlan& plan : op->axes)
      if (std::find(known.begin(), known.end(), plan.axis.symbol) == known.end())
        known.push_back(plan.axis.symbol);
  return parse_axes(arguments, known, ops.size() == 1 ? ops[0]->name : "the selection");
}

}  // namespace tigon::cli
