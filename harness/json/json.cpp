// SPDX-License-Identifier: Apache-2.0
// JSON values and their text.
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

namespace tigon {

namespace {

constexpr size_t kMostLevels = 64;  // of values in values; the deepest record has 4

const char* name_of(Json::Kind kind) {
  constexpr const char* kNames[] = {"null",     "a boolean", "a number", "a number",
                                    "a number", "text",      "an array", "an object"};
  return kNames[static_cast<int>(kind)];
}

std::string quoted(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

// ---- reading
// --------------------------------------------------------------------------------------

// Builds a value from what nlohmann's parser finds.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  Json result;
  std::string error;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return refuse("binary data is no JSON"); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    open_.back().names_.push_back(std::move(name));
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> names(open_.back().names_.begin(), open_.back().names_.end());
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return refuse(fmt::format("an object has '{}' twice", *twice));
    return close();
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    return refuse(e.what());
  }

 private:
  bool refuse(std::string reason) {
    error = std::move(reason);
    return false;
  }
  bool open(Json value) {
    if (open_.size() == kMostLevels)
      return refuse(fmt::format("more than {} values in one another", kMostLevels));
    open_.push_back(std::move(value));
    return true;
  }
  bool close() {
    Json value = std::move(open_.back());
    open_.pop_back();
    return add(std::move(value));
  }
  bool add(Json value) {
    (open_.empty() ? result : open_.back().values_.emplace_back()) = std::move(value);
    return true;
  }

  std::vector<Json> open_;
};

Json Json::parse(std::string_view text) {
  JsonReader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) throw Error(reader.error);
  return std::move(reader.result);
}

std::optional<Json> Json::try_parse(std::string_view text) {
  try {
    return parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// ---- writing
// --------------------------------------------------------------------------------------

void Json::write(std::string* out, int indent, int depth) const {
  const auto new_line = [&](int levels) {
    if (indent >= 0) out->append("\n").append(static_cast<size_t>(indent * levels), ' ');
  };
  switch (kind_) {
    case Kind::kNull:
      out->append("null");
      return;
    case Kind::kBoolean:
      out->append(boolean_ ? "true" : "false");
      return;
    case Kind::kInteger:
      out->append(fmt::to_string(integer_));
      return;
    case Kind::kUnsigned:
      out->append(fmt::to_string(unsigned_));
      return;
    case Kind::kFloat:
      out->append(nlohmann::json(float_).dump());
      return;
    case Kind::kText:
      out->append(quoted(text_));
      return;
    case Kind::kArray:
    case Kind::kObject:
      break;
  }
  out->push_back(is_array() ? '[' : '{');
  for (size_t i = 0; i < size(); ++i) {
    if (i > 0) out->push_back(',');
    new_line(depth + 1);
    if (is_object()) out->append(quoted(names_[i])).append(indent >= 0 ? ": " : ":");
    values_[i].write(out, indent, depth + 1);
  }
  if (!empty()) new_line(depth);
  out->push_back(is_array() ? ']' : '}');
}

std::string Json::dump(int indent) const {
  std::string text;
  write(&text, indent, 0);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

// ---- values
// ---------------------------------------------------------------------------------------

Json::Json() = default;
Json::Json(std::nullptr_t) {}
Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::string_view text) : Json(std::string(text)) {}
Json::Json(std::string text) : kind_(Kind::kText), text_(std::move(text)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(std::initializer_list<Json> list) {
  const bool members = std::all_of(list.begin(), list.end(), [](const Json& member) {
    return member.is_array() && member.size() == 2 && member.front().is_string();
  });
  *this = members ? object() : array(list);
  if (members)
    for (const Json& member : list) (*this)[member.front().text()] = member.back();
}

Json Json::array() {
  Json json;
  json.kind_ = Kind::kArray;
  return json;
}

Json Json::array(std::initializer_list<Json> list) {
  Json json = array();
  json.values_ = list;
  return json;
}

Json Json::object() {
  Json json;
  json.kind_ = Kind::kObject;
  return json;
}

void Json::set_boolean(bool value) { kind_ = Kind::kBoolean, boolean_ = value; }
void Json::set_integer(int64_t value) { kind_ = Kind::kInteger, integer_ = value; }
void Json::set_float(double value) { kind_ = Kind::kFloat, float_ = value; }
void Json::set_unsigned(uint64_t value) {
  if (value <= uint64_t{std::numeric_limits<int64_t>::max()}) {
    set_integer(static_cast<int64_t>(value));
  } else {
    kind_ = Kind::kUnsigned, unsigned_ = value;
  }
}

void Json::need(Kind kind) const {
  if (kind_ != kind)
    throw Error(fmt::format("{} is needed, here is {}", name_of(kind), name_of(kind_)));
}

bool Json::boolean() const { return need(Kind::kBoolean), boolean_; }
const std::string& Json::text() const { return need(Kind::kText), text_; }

int64_t Json::integer() const {
  if (kind_ == Kind::kFloat) return static_cast<int64_t>(float_);
  if (kind_ == Kind::kUnsigned) return static_cast<int64_t>(unsigned_);
  return need(Kind::kInteger), integer_;
}

double Json::number() const {
  if (kind_ == Kind::kInteger) return static_cast<double>(integer_);
  if (kind_ == Kind::kUnsigned) return static_cast<double>(unsigned_);
  return need(Kind::kFloat), float_;
}

bool Json::equals(const Json& other) const {
  if (is_number_integer() && other.is_number_integer())
    return kind_ == other.kind_ && integer_ == other.integer_;
  if (is_number() && other.is_number()) return number() == other.number();
  if (kind_ != other.kind_ || size() != other.size()) return false;
  switch (kind_) {
    case Kind::kBoolean:
      return boolean_ == other.boolean_;
    case Kind::kText:
      return text_ == other.text_;
    case Kind::kArray:
      return values_ == other.values_;
    default:
      break;
  }
  for (size_t i = 0; i < size(); ++i) {
    const auto twin = other.find(names_[i]);
    if (twin == other.end() || !values_[i].equals(*twin)) return false;
  }
  return true;
}

// ---- arrays and objects
// ---------------------------------------------------------------------------

Json::iterator Json::begin() { return values_.begin(); }
Json::iterator Json::end() { return values_.end(); }
Json::const_iterator Json::begin() const { return values_.begin(); }
Json::const_iterator Json::end() const { return values_.end(); }

Json::const_iterator Json::find(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  return values_.begin() + (is_object() ? found - names_.begin() : std::ssize(values_));
}

bool Json::contains(std::string_view name) const { return find(name) != values_.end(); }

const Json& Json::element(size_t i) const {
  need(Kind::kArray);
  if (i >= size()) throw Error(fmt::format("element {} of an array of {}", i, size()));
  return values_[i];
}

const Json& Json::at(std::string_view name) const {
  need(Kind::kObject);
  const auto found = find(name);
  if (found == end()) throw Error(fmt::format("'{}' is missing", name));
  return *found;
}

const Json& Json::operator[](const std::string& name) const {
  static const Json none;
  const auto found = find(name);
  return found == end() ? none : *found;
}
const Json& Json::operator[](const char* name) const { return (*this)[std::string(name)]; }

Json& Json::operator[](const std::string& name) {
  if (is_null()) kind_ = Kind::kObject;
  need(Kind::kObject);
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return values_[static_cast<size_t>(found - names_.begin())];
  names_.push_back(name);
  return values_.emplace_back();
}
Json& Json::operator[](const char* name) { return (*this)[std::string(name)]; }

std::string Json::value(std::string_view name, const char* otherwise) const {
  return value(name, std::string(otherwise));
}

void Json::push_back(Json value) {
  if (is_null()) kind_ = Kind::kArray;
  need(Kind::kArray);
  values_.push_back(std::move(value));
}

void Json::update(const Json& members) {
  members.need(Kind::kObject);
  for (const auto [name, value] : members.items()) (*this)[name] = value;
}

void Json::erase(std::string_view name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return;
  values_.erase(values_.begin() + (found - names_.begin()));
  names_.erase(found);
}

}  // namespace tigon
