// SPDX-License-Identifier: Apache-2.0
// What record.schema.json declares of each kind of record, compiled in.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tigon {

// Of every record that this program writes.
const std::string& schema_version();

// The fields that name a record of a kind within its run; nothing for a kind that may repeat.
std::optional<std::vector<std::string>> identity_of(std::string_view kind);

}  // namespace tigon
