// SPDX-License-Identifier: Apache-2.0
// Options as numbers.
#include "harness/run/cases/option_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "harness/judge/verdict.h"

namespace tigon {

const OptionInfo* find_option(const Pass& pass, std::string_view name) {
  for (const OptionInfo& o : pass.options)
    if (o.name == name) return &o;
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

}  // namespace tigon
