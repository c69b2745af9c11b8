// SPDX-License-Identifier: Apache-2.0
// The regular expressions of --filter and --exclude.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <string>
#include <string_view>

#include "harness/judge/verdict.h"

namespace tigon {

// std::regex takes time by the groups for every letter of a name: thousands of them would keep a
// command silent for minutes.
constexpr size_t kMostPatternLetters = 2000, kMostPatternGroups = 200;

// Throws UsageError for what is too long or no regular expression; `option` says who gave it.
inline std::regex search_pattern(std::string_view option, const std::string& text) {
  const auto groups = static_cast<size_t>(std::ranges::count(text, '('));
  if (text.size() > kMostPatternLetters || groups > kMostPatternGroups)
    throw UsageError(
        fmt::format("{}: {} letters and {} groups; a regular expression here has at most {} and "
                    "{}, write a shorter one or several runs",
                    option, text.size(), groups, kMostPatternLetters, kMostPatternGroups));
  try {
    return std::regex(text, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    throw UsageError(
        fmt::format("{} '{}' is not a regular expression: {}", option, text, error.what()));
  }
}

}  // namespace tigon
