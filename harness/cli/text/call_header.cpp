// SPDX-License-Identifier: Apache-2.0
// A C header that gives the tensors and options of an op's calls their names.
#include "harness/cli/text/call_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "harness/cli/text/contract_text.h"

namespace tigon::cli {
namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string member(const std::string& declaration, const std::string& comment) {
  return fmt::format("  {:<24} /* {} */\n", declaration + ";", comment);
}

std::string tensor_member(const TensorInfo& t, const OpSpec& op) {
  std::string about =
      fmt::format("{} {} {}", name_of(t.role), shape_of(t), dtypes_of(t, op.policies));
  if (t.is_optional) about += "; data is NULL where it is left out";
  return member("tigon_tensor " + t.name, about);
}

// The shortest text that gives the same value; most options are floats.
std::string number(double value) {
  if (std::abs(value) < 1e15 && std::floor(value) == value) return fmt::format("{:.0f}", value);
  const auto narrow = static_cast<float>(value);
  return narrow == value ? fmt::format("{}", narrow) : fmt::format("{}", value);
}

std::string option_member(const OptionInfo& o) {
  const std::string about = o.choices.empty() ? number(o.default_value) + " where it is left out"
                                              : fmt::format("{}", fmt::join(o.choices, ", "));
  return member("double " + o.name, about);
}

std::string choices_of(const std::string& prefix, const OptionInfo& o) {
  std::string text;
  for (size_t i = 0; i < o.choices.size(); ++i)
    text += fmt::format("{}{}_{}_{} = {}", i == 0 ? "enum { " : ", ", upper(prefix), upper(o.name),
                        upper(o.choices[i]), i);
  return text.empty() ? "" : text + " };\n";
}

template <class Items>
std::string members_of_a(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back("&a." + item.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string function(const std::string& type, const Pass& pass) {
  std::string f = fmt::format(
      "static inline {0} {0}_of(const tigon_call* call) {{\n"
      "  const tigon_tensor left_out = {{NULL, NULL, NULL, 0, 0}};\n  {0} a;\n"
      "  tigon_tensor* const tensors[] = {{{1}}};\n",
      type, members_of_a(pass.tensors));
  if (!pass.options.empty())
    f += fmt::format("  double* const options[] = {{{}}};\n", members_of_a(pass.options));
  f += fmt::format(
      "  int32_t i;\n  for (i = 0; i < {}; ++i)\n"
      "    *tensors[i] = i < call->tensor_count ? call->tensors[i] : left_out;\n",
      pass.tensors.size());
  for (const OptionInfo& o : pass.options)
    f += fmt::format("  a.{} = {};\n", o.name, number(o.default_value));
  if (!pass.options.empty())
    f += fmt::format(
        "  for (i = 0; i < call->option_count; ++i)\n"
        "    if (call->options[i].index >= 0 && call->options[i].index < {})\n"
        "      *options[call->options[i].index] = call->options[i].value;\n",
        pass.options.size());
  return f + "  return a;\n}\n";
}

std::string text_of(const OpSpec& op, const Pass& pass) {
  const std::string prefix = op.name + "_" + pass.name, type = prefix + "_args";
  std::string text = fmt::format("\n/* ---- {}.{} */\n\n", op.name, pass.name);
  for (const OptionInfo& o : pass.options) text += choices_of(prefix, o);
  text += fmt::format("typedef struct {} {{\n", type);
  for (const TensorInfo& t : pass.tensors) text += tensor_member(t, op);
  for (const OptionInfo& o : pass.options) text += option_member(o);
  return text + fmt::format("}} {};\n\n", type) + function(type, pass);
}

}  // namespace

std::string call_header(const OpSpec& op) {
  std::string text = fmt::format(
      "/* {0}: the tensors and options of a tigon_call by name. Made by\n"
      " *   ./tigon describe {0} --call\n * {2} */\n"
      "#ifndef TIGON_{1}_CALL_H_\n#define TIGON_{1}_CALL_H_\n\n#include \"tigon.h\"\n",
      op.name, upper(op.name), op.summary);
  for (const Pass& pass : op.passes) text += text_of(op, pass);
  return text + "\n#endif\n";
}

}  // namespace tigon::cli
