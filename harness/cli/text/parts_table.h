// SPDX-License-Identifier: Apache-2.0
// Records of kind converge_parts as text.
#pragma once
#include <string>
#include <vector>

#include "harness/record/record_writer.h"

namespace tigon::cli {

// The sizes of a training that its parts are measured over, as --axis and the records name them.
inline constexpr const char *kSequenceAxis = "T", *kVocabularyAxis = "V";

// One line about a record.
std::string parts_line(const Json& record);

// Records of the same sizes as one table: parts down, implementations across. Nothing for none.
void print_parts(const std::vector<Json>& records);

}  // namespace tigon::cli
