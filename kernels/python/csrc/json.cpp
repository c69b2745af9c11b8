// SPDX-License-Identifier: Apache-2.0
// A recursive reader; texts that tigon_describe() gives escape nothing but quotes and backslashes.
#include "kernels/python/csrc/json.h"

#include <cctype>
#include <stdexcept>

namespace tigon::torch_adapter {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json document() {
    Json value = next();
    if (peek() != '\0') fail("more text behind the end");
    return value;
  }

 private:
  Json next() {
    switch (peek()) {
      case '{':
        return object();
      case '[':
        return list();
      case '"':
        return {string(), {}, {}};
      default:
        return word();
    }
  }

  Json object() {
    Json value;
    take('{');
    while (peek() != '}') {
      if (!value.names.empty()) take(',');
      value.names.push_back(string());
      take(':');
      value.items.push_back(next());
    }
    take('}');
    return value;
  }

  Json list() {
    Json value;
    take('[');
    while (peek() != ']') {
      if (!value.items.empty()) take(',');
      value.items.push_back(next());
    }
    take(']');
    return value;
  }

  std::string string() {
    std::string s;
    take('"');
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) s += text_[at_++];
    }
    take('"');
    return s;
  }

  // A number, true, false or null.
  Json word() {
    Json value;
    while (at_ < text_.size() && is_of_word(text_[at_])) value.text += text_[at_++];
    if (value.text.empty()) fail("a value is missing");
    return value;
  }

  static bool is_of_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.';
  }

  // The next character that is no space; '\0' at the end.
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void take(char c) {
    if (peek() != c) fail(std::string("'") + c + "' is missing");
    ++at_;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("JSON, character " + std::to_string(at_) + ": " + what);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Json& Json::at(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return items[i];
  throw std::runtime_error("the description of an op has no " + std::string(name));
}

Json parse_json(std::string_view text) { return Reader(text).document(); }

}  // namespace tigon::torch_adapter
