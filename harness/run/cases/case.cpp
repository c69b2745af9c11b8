// Case ids: text of a case and back.
#include "harness/run/cases/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "harness/judge/verdict.h"
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

const OptionInfo* find_option(const Pass& pass, std::string_view name) {
  for (const OptionInfo& o : pass.options)
    if (o.name == name) return &o;
  return nullptr;
}

const TensorInfo* find_tensor(const Pass& pass, std::string_view name) {
  for (const TensorInfo& t : pass.tensors)
    if (t.name == name) return &t;
  return nullptr;
}

double option_value(const OptionInfo& option, const std::string& text) {
  for (size_t i = 0; i < option.choices.size(); ++i)
    if (option.choices[i] == text) return static_cast<double>(i);
  if (!option.choices.empty())
    throw UsageError(
        fmt::format("'{}={}': not one of {}", option.name, text, fmt::join(option.choices, ", ")));
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0')
    throw UsageError(fmt::format("'{}={}': not a number", option.name, text));
  return value;
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

}  // namespace

const Pass* find_pass(const OpSpec& op, std::string_view name) {
  for (const Pass& p : op.passes)
    if (p.name == name) return &p;
  return nullptr;
}

const Implementation* find_implementation(const Pass& pass, std::string_view name) {
  for (const Implementation& i : pass.implementations)
    if (i.name == name) return &i;
  return nullptr;
}

std::string case_id(const Case& c) {
  std::string id = fmt::format("{}/{}/{}/{}/", c.op, c.pass, c.impl, name_of(c.dtype));
  const auto add = [&](std::string_view key, const auto& value) {
    fmt::format_to(std::back_inserter(id), "{}{}={}", id.back() == '/' ? "" : ",", key, value);
  };
  std::map<std::string, int64_t> rest = c.axes;
  if (const OpSpec* op = find_op(c.op)) {
    for (const AxisPlan& a : op->axes)
      if (const auto found = rest.find(a.axis.symbol); found != rest.end()) {
        add(found->first, found->second);
        rest.erase(found);
      }
  }
  for (const auto& [name, value] : rest) add(name, value);
  for (const auto& [name, value] : c.options) add(name, value);
  add("inputs", c.inputs);
  add("seed", c.seed);
  if (c.shift != 0) add("shift", c.shift);
  if (c.gap != 0) add("gap", c.gap);
  if (!c.property.empty()) add("prop", c.property);
  return id;
}

Case parse_case(std::string_view id) {
  const auto parts = split(id, '/');
  if (parts.size() != 5)
    throw UsageError(
        fmt::format("case '{}': expected op/pass/impl/dtype/axis=value,... with four '/'", id));
  Case c;
  c.op = parts[0];
  c.pass = parts[1];
  c.impl = parts[2];
  const OpSpec* op = find_op(c.op);
  if (!op)
    throw UsageError(fmt::format("no op '{}'; known: {}", c.op,
                                 known(all_ops(), [](const OpSpec& o) { return o.name; })));
  const Pass* pass = find_pass(*op, c.pass);
  if (!pass)
    throw UsageError(fmt::format("{} has no pass '{}'; known: {}", c.op, c.pass,
                                 known(op->passes, [](const Pass& p) { return p.name; })));
  if (!find_implementation(*pass, c.impl))
    throw UsageError(
        fmt::format("{} {} has no implementation '{}'; known: {}{}", c.op, c.pass, c.impl,
                    known(pass->implementations, [](const Implementation& i) { return i.name; }),
                    c.impl.starts_with("plugin:")
                        ? ", and in check and bench those of a library that --impl-from names"
                        : ""));
  const auto dtype = parse_dtype(parts[3]);
  if (!dtype)
    throw UsageError(fmt::format("no dtype '{}'; known: {}", parts[3],
                                 known(op->policies, [](DType t) { return name_of(t); })));
  c.dtype = *dtype;

  for (std::string_view assignment : split(parts[4], ',')) {
    const size_t equals = assignment.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw UsageError(fmt::format("'{}' in case '{}': expected key=value", assignment, id));
    const std::string key(assignment.substr(0, equals)), value(assignment.substr(equals + 1));
    const bool is_axis = std::any_of(op->axes.begin(), op->axes.end(),
                                     [&](const AxisPlan& a) { return key == a.axis.symbol; });
    if (is_axis) {
      c.axes[key] = integer<int64_t>(key, value);
    } else if (key == "inputs") {
      c.inputs = value;
    } else if (key == "seed") {
      c.seed = integer<uint64_t>(key, value);
    } else if (key == "shift") {
      c.shift = integer<int>(key, value);
    } else if (key == "gap") {
      c.gap = integer<int>(key, value);
    } else if (key == "prop") {
      if (!find_property(*pass, value))
        throw UsageError(
            fmt::format("{} {} has no property '{}'; known: {}", c.op, c.pass, value,
                        known(properties_of(*pass), [](const Property& p) { return p.name; })));
      c.property = value;
    } else {
      check_option(*op, *pass, key, value);
      c.options[key] = value;
    }
  }
  for (const AxisPlan& a : op->axes)
    if (!c.axes.count(a.axis.symbol))
      throw UsageError(
          fmt::format("case '{}': no value for axis {} ({})", id, a.axis.symbol, a.axis.meaning));
  if (!options_fit(*op, *pass, c))
    throw UsageError(fmt::format("case '{}': its options do not fit its sizes", id));
  if (c.inputs != kTiledInputs &&
      std::none_of(op->inputs.begin(), op->inputs.end(),
                   [&](const InputSet& s) { return s.name == c.inputs; }))
    throw UsageError(fmt::format("{} has no inputs '{}'; known: {}", c.op, c.inputs,
                                 known(op->inputs, [](const InputSet& s) { return s.name; })));
  return c;
}

uint64_t stable_hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char byte : text) h = (h ^ byte) * 0x100000001b3u;
  h ^= h >> 33;  // the finaliser of MurmurHash3, so that the low bits choose a shard evenly
  h *= 0xff51afd7ed558ccdu;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53u;
  return h ^ (h >> 33);
}

std::string case_key(const Case& c) { return fmt::format("{:016x}", stable_hash(case_id(c))); }

Binding binding_of(const Case& c, const OpSpec& op, const Pass& pass) {
  Binding b;
  b["elem"] = static_cast<double>(size_of(c.dtype));
  b["dtype"] = static_cast<double>(c.dtype);
  // Options of the op's other passes too: an expression of forward's budget may read them when
  // backward runs it for its saved inputs.
  for (const Pass& other : op.passes)
    for (const OptionInfo& o : other.options) b[o.name] = o.default_value;
  for (const TensorInfo& t : pass.tensors)
    if (t.is_on_request) b[t.name] = is_left_out(t, c.options) ? 0 : 1;
  for (const auto& [name, value] : c.axes) b[name] = static_cast<double>(value);
  for (const auto& [name, value] : c.options)
    if (const OptionInfo* o = find_option(pass, name)) b[name] = option_value(*o, value);
  return b;
}

bool options_fit(const OpSpec& op, const Pass& pass, const Case& c) {
  const Binding binding = binding_of(c, op, pass);
  return std::all_of(pass.tensors.begin(), pass.tensors.end(), [&](const TensorInfo& t) {
    return std::all_of(t.shape.begin(), t.shape.end(),
                       [&](const Expr& size) { return size.integer(binding) >= 0; });
  });
}

}  // namespace tigon
