// SPDX-License-Identifier: Apache-2.0
// Options of a case, which are text, as numbers.
#pragma once
#include <string>
#include <string_view>

#include "harness/spec/op_spec.h"

namespace tigon {

// Null where the pass has no such option.
const OptionInfo* find_option(const Pass& pass, std::string_view name);

// A choice by its index. Throws UsageError where the text is no choice, or no number.
double option_value(const OptionInfo& option, const std::string& text);

}  // namespace tigon
