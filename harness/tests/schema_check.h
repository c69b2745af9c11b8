// Checks a JSON value against the part of JSON Schema draft 7 that record.schema.json uses.
#pragma once
#include <fmt/format.h>

#include <regex>
#include <stdexcept>
#include <string>

#include "harness/json/json.h"

namespace tigon {

class SchemaCheck {
 public:
  explicit SchemaCheck(Json schema) : schema_(std::move(schema)) {}

  // Empty when `value` is valid, else the first violation: where and what. Throws on a keyword of
  // the schema that is not implemented here.
  std::string violation(const Json& value) const { return check(schema_, value, ""); }

 private:
  using J = Json;

  static bool is(const J& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "boolean" ? value.is_boolean()
           : type == "null"    ? value.is_null()
                               : throw std::logic_error("unknown type " + type);
  }

  static bool is_any(const J& value, const J& types) {
    if (types.is_string()) return is(value, types);
    for (const J& type : types)
      if (is(value, type)) return true;
    return false;
  }

  // The first violation of one keyword.
  std::string keyword(const std::string& key, const J& rule, const J& schema, const J& value,
                      const std::string& at) const {
    const auto wrong = [&] { return fmt::format("{}: {} {}", at, key, rule.dump()); };
    if (key == "$ref")
      return check(schema_.at("definitions").at(rule.get<std::string>().substr(14)), value, at);
    if (key == "type") return is_any(value, rule) ? "" : wrong();
    if (key == "const") return value == rule ? "" : wrong();
    if (key == "enum")
      return std::find(rule.begin(), rule.end(), value) != rule.end() ? "" : wrong();
    if (key == "minimum")
      return !value.is_number() || value.get<double>() >= rule.get<double>() ? "" : wrong();
    if (key == "pattern") {
      const std::regex pattern(rule.get<std::string>());
      return !value.is_string() || std::regex_search(value.get<std::string>(), pattern) ? ""
                                                                                        : wrong();
    }
    if (key == "required") {
      for (const J& name : rule)
        if (value.is_object() && !value.contains(name.get<std::string>()))
          return fmt::format("{}: {} is missing", at, name.dump());
      return "";
    }
    if (key == "properties" || key == "additionalProperties" || key == "items")
      return members(key, rule, schema, value, at);
    if (key == "allOf") {
      for (const J& part : rule)
        if (const std::string found = check(part, value, at); !found.empty()) return found;
      return "";
    }
    if (key == "if")
      return check(rule, value, at).empty() ? check(schema.at("then"), value, at) : "";
    if (key == "then" || key == "title" || key == "description" || key == "$schema" ||
        key == "definitions")
      return "";
    throw std::logic_error("unknown keyword " + key);
  }

  std::string members(const std::string& key, const J& rule, const J& schema, const J& value,
                      const std::string& at) const {
    if (key == "items") {
      for (size_t i = 0; i < (value.is_array() ? value.size() : 0); ++i)
        if (const std::string found = check(rule, value[i], fmt::format("{}/{}", at, i));
            !found.empty())
          return found;
      return "";
    }
    if (!value.is_object()) return "";
    for (const auto& [name, member] : value.items()) {
      const bool named = schema.contains("properties") && schema["properties"].contains(name);
      if (key == "properties" ? !named : key == "additionalProperties" && named) continue;
      const std::string found =
          check(key == "properties" ? rule.at(name) : rule, member, at + "/" + name);
      if (!found.empty()) return found;
    }
    return "";
  }

  std::string check(const J& schema, const J& value, const std::string& at) const {
    for (const auto& [key, rule] : schema.items())
      if (const std::string found = keyword(key, rule, schema, value, at); !found.empty())
        return found;
    return "";
  }

  J schema_;
};

}  // namespace tigon
