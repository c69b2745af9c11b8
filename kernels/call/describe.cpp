// SPDX-License-Identifier: Apache-2.0
// An op as JSON. The library has no dependency that would write it.
#include "kernels/call/describe.h"

#include <charconv>
#include <map>

namespace tigon::call {

namespace {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

template <class Items, class F>
std::string list(const Items& items, const F& to_text) {
  std::string out = "[";
  for (const auto& item : items) out += (out.size() > 1 ? ", " : "") + to_text(item);
  return out + "]";
}

const char* name_of(OptionType type) {
  switch (type) {
    case OptionType::kFloat:
      return "float";
    case OptionType::kInt:
      return "int";
    case OptionType::kChoice:
      return "choice";
  }
  return "?";
}

// The shortest text that gives the same value: options are floats or whole numbers.
std::string number(const OptionInfo& option) {
  char text[64];
  const auto end =
      option.type == OptionType::kFloat
          ? std::to_chars(text, text + sizeof text, static_cast<float>(option.default_value))
          : std::to_chars(text, text + sizeof text, static_cast<int64_t>(option.default_value));
  return {text, end.ptr};
}

std::string quoted_or_null(const char* name) {
  return name != nullptr ? quoted(name) : std::string("null");
}

std::string tensor_json(const TensorInfo& t) {
  return "{\"name\": " + quoted(t.name) + ", \"role\": " + quoted(tigon::name_of(t.role)) +
         ", \"dtype\": " + quoted(tigon::name_of(t.dtype)) +
         ", \"shape\": " + list(t.shape, [](const Expr& size) { return quoted(size.text()); }) +
         ", \"optional\": " + (t.is_optional ? "true" : "false") +
         ", \"gradient_of\": " + quoted_or_null(t.gradient_of) +
         ", \"same_gradient_as\": " + quoted_or_null(t.same_gradient_as) +
         ", \"strided\": " + (t.is_strided ? "true" : "false") +
         ", \"may_alias\": " + list(t.may_alias, [](const char* input) { return quoted(input); }) +
         "}";
}

std::string option_json(const OptionInfo& o) {
  const std::string value = o.type == OptionType::kChoice
                                ? quoted(o.choices[static_cast<size_t>(o.default_value)])
                                : number(o);
  return "{\"name\": " + quoted(o.name) + ", \"type\": " + quoted(name_of(o.type)) +
         ", \"default\": " + value +
         ", \"choices\": " + list(o.choices, [](const char* choice) { return quoted(choice); }) +
         "}";
}

std::string axes_json(const PassInfo& info) {
  std::map<std::string, std::string> meanings;
  for (const TensorInfo& t : info.tensors)
    for (const Expr size : t.shape)
      if (size.axis().symbol != nullptr) meanings[size.axis().symbol] = size.axis().meaning;
  std::string out = "{";
  for (const auto& [symbol, meaning] : meanings)
    out += (out.size() > 1 ? ", " : "") + quoted(symbol) + ": " + quoted(meaning);
  return out + "}";
}

}  // namespace

std::string describe(const tigon_op& op, const OpState& state) {
  return "{\"name\": " + quoted(op.name) +
         ", \"dtype\": " + quoted(tigon::name_of(static_cast<DType>(op.dtype))) +
         ", \"implementation\": " + quoted(op.implementation) +
         ", \"abi\": " + std::to_string(op.abi) + ", \"formula\": " + quoted(state.formula) +
         ", \"axes\": " + axes_json(state.info) +
         ", \"tensors\": " + list(state.info.tensors, tensor_json) +
         ", \"options\": " + list(state.info.options, option_json) + "}";
}

}  // namespace tigon::call
