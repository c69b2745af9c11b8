// SPDX-License-Identifier: Apache-2.0
// A reader of the JSON that tigon_describe() gives.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tigon::torch_adapter {

// A value. Of its members only those of its kind mean something; `text` is that of a string, a
// number, true, false or null.
struct Json {
  std::string text;
  std::vector<std::string> names;  // of an object's members
  std::vector<Json> items;         // of a list, or the members' values

  // Throws std::runtime_error where there is none.
  const Json& at(std::string_view name) const;
  bool is_true() const { return text == "true"; }
};

// Throws std::runtime_error with the place of what is no JSON.
Json parse_json(std::string_view text);

}  // namespace tigon::torch_adapter
