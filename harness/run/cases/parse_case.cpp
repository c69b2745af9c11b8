// SPDX-License-Identifier: Apache-2.0
// The case of an id. What it names must be known.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "harness/judge/verdict.h"
#include "harness/run/cases/case.h"
#include "harness/run/cases/option_value.h"
#include "harness/run/judging/huge.h"
#include "harness/run/judging/properties.h"

namespace tigon {

namespace {

template <class Range, class Name>
std::string known(const Range& range, Name name) {
  std::vector<std::string> names;
  for (const auto& x : range) names.push_back(name(x));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class Integer>
Integer integer(std::string_view key, std::string_view text) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UsageError(fmt::format("'{}={}': not an integer of 0 or more", key, text));
  return value;
}

const TensorInfo* find_tensor(const Pass& pass, std::string_view name) {
  for (const TensorInfo& t : pass.tensors)
    if (t.name == name) return &t;
  return nullptr;
}

void check_option(const OpSpec& op, const Pass& pass, const std::string& key,
                  const std::string& value) {
  if (const OptionInfo* option = find_option(pass, key)) {
    option_value(*option, value);
    return;
  }
  const TensorInfo* tensor = find_tensor(pass, key);
  if (tensor && tensor->is_optional) {
    const char* only = tensor->is_on_request ? "given" : "absent";
    if (value == only) return;
    throw UsageError(fmt::format("'{}={}': this optional tensor can only be {}", key, value, only));
  }
  const auto axis_name = [](const AxisPlan& a) { return std::string(a.axis.symbol); };
  throw UsageError(fmt::format(
      "'{}': neither an axis ({}) nor an option ({}) of {} {}", key, known(op.axes, axis_name),
      known(pass.options, [](const OptionInfo& o) { return o.name; }), op.name, pass.name));
}

const OpSpec& known_op(const Case& c) {
  if (const OpSpec* op = find_op(c.op)) return *op;
  throw UsageError(fmt::format("no op '{}'; known: {}", c.op,
                               known(all_ops(), [](const OpSpec& o) { return o.name; })));
}

const Pass& known_pass(const OpSpec& op, const Case& c) {
  if (const Pass* pass = find_pass(op, c.pass)) return *pass;
  throw UsageError(fmt::format("{} has no pass '{}'; known: {}", c.op, c.pass,
                               known(op.passes, [](const Pass& p) { return p.name; })));
}

void require_implementation(const Pass& pass, const Case& c) {
  if (find_implementation(pass, c.impl)) return;
  throw UsageError(
      fmt::format("{} {} has no implementation '{}'; known: {}{}", c.op, c.pass, c.impl,
                  known(pass.implementations, [](const Implementation& i) { return i.name; }),
                  c.impl.starts_with("plugin:")
                      ? ", and in check and bench those of a library that --impl-from names"
                      : ""));
}

DType known_dtype(const OpSpec& op, std::string_view name) {
  if (const auto dtype = parse_dtype(name)) return *dtype;
  throw UsageError(fmt::format("no dtype '{}'; known: {}", name,
                               known(op.policies, [](DType t) { return name_of(t); })));
}

void require_property(const Pass& pass, const Case& c, const std::string& name) {
  if (find_property(pass, name)) return;
  throw UsageError(
      fmt::format("{} {} has no property '{}'; known: {}", c.op, c.pass, name,
                  known(properties_of(pass), [](const Property& p) { return p.name; })));
}

// key=value of a case: an axis, one of the keys that every case has, or an option.
void assign(const OpSpec& op, const Pass& pass, const std::string& key, const std::string& value,
            Case* c) {
  const bool is_axis = std::any_of(op.axes.begin(), op.axes.end(),
                                   [&](const AxisPlan& a) { return key == a.axis.symbol; });
  if (is_axis) {
    c->axes[key] = integer<int64_t>(key, value);
  } else if (key == "inputs") {
    c->inputs = value;
  } else if (key == "seed") {
    c->seed = integer<uint64_t>(key, value);
  } else if (key == "shift") {
    c->shift = integer<int>(key, value);
  } else if (key == "skew") {
    c->skew = integer<int>(key, value);
  } else if (key == "gap") {
    c->gap = integer<int>(key, value);
  } else if (key == "launch") {
    c->launch = integer<int>(key, value);
  } else if (key == "prop") {
    require_property(pass, *c, value);
    c->property = value;
  } else {
    check_option(op, pass, key, value);
    c->options[key] = value;
  }
}

void require_complete(const OpSpec& op, const Pass& pass, const Case& c, std::string_view id) {
  for (const AxisPlan& a : op.axes)
    if (!c.axes.count(a.axis.symbol))
      throw UsageError(
          fmt::format("case '{}': no value for axis {} ({})", id, a.axis.symbol, a.axis.meaning));
  if (!options_fit(op, pass, c))
    throw UsageError(fmt::format("case '{}': its options do not fit its sizes", id));
  if (c.inputs != kTiledInputs &&
      std::none_of(op.inputs.begin(), op.inputs.end(),
                   [&](const InputSet& s) { return s.name == c.inputs; }))
    throw UsageError(fmt::format("{} has no inputs '{}'; known: {}", c.op, c.inputs,
                                 known(op.inputs, [](const InputSet& s) { return s.name; })));
}

}  // namespace

Case parse_case(std::string_view id) {
  const auto parts = split(id, '/');
  if (parts.size() != 5)
    throw UsageError(
        fmt::format("case '{}': expected op/pass/impl/dtype/axis=value,... with four '/'", id));
  Case c;
  c.op = parts[0];
  c.pass = parts[1];
  c.impl = parts[2];
  const OpSpec& op = known_op(c);
  const Pass& pass = known_pass(op, c);
  require_implementation(pass, c);
  c.dtype = known_dtype(op, parts[3]);
  for (const std::string_view assignment : split(parts[4], ',')) {
    const size_t equals = assignment.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw UsageError(fmt::format("'{}' in case '{}': expected key=value", assignment, id));
    assign(op, pass, std::string(assignment.substr(0, equals)),
           std::string(assignment.substr(equals + 1)), &c);
  }
  require_complete(op, pass, c, id);
  return c;
}

}  // namespace tigon
