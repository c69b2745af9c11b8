// SPDX-License-Identifier: Apache-2.0
// A JSON value: what records, manifests and messages between processes are made of. nlohmann's
// library reads the text, in json.cpp alone: a file that includes it compiles for seconds longer.
#pragma once
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tigon {

class Json;

namespace json_detail {

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, char>;
template <class T>
concept Map = requires {
  typename T::mapped_type;
};
// A vector, list, array or set of what JSON can hold, or a map from names to it.
template <class T>
concept Container = !std::is_convertible_v<const T&, std::string_view> &&
                    !std::is_same_v<T, Json> && requires(const T& t) {
  typename T::value_type;
  t.begin();
  t.size();
};
template <class T>
concept ReadableContainer = Container<T> &&
    (Map<T> || requires(T t, typename T::value_type v) { t.insert(t.end(), v); });

}  // namespace json_detail

class Json {
 public:
  // The text is no JSON, or a value is not of the type that is asked for. what() is one line.
  struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  enum class Kind { kNull, kBoolean, kInteger, kUnsigned, kFloat, kText, kArray, kObject };

  Json();
  Json(std::nullptr_t);
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  template <json_detail::Number T>
  Json(T number) : Json() {
    if constexpr (std::is_same_v<T, bool>) {
      set_boolean(number);
    } else if constexpr (std::is_floating_point_v<T>) {
      set_float(static_cast<double>(number));
    } else if constexpr (std::is_signed_v<T>) {
      set_integer(number);
    } else {
      set_unsigned(number);
    }
  }
  template <json_detail::Container T>
  Json(const T& container) : Json(json_detail::Map<T> ? object() : array()) {
    for (const auto& element : container) {
      if constexpr (json_detail::Map<T>)
        (*this)[element.first] = element.second;
      else
        push_back(element);
    }
  }
  // {{"name", value}, ...} is an object, any other list an array.
  Json(std::initializer_list<Json> list);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json array(std::initializer_list<Json> list);
  static Json object();

  // Throws Error, also for a name that an object has twice and for values in too many others.
  static Json parse(std::string_view text);
  static std::optional<Json> try_parse(std::string_view text);
  // One line, or lines indented by that many blanks. Bytes that are not UTF-8 become U+FFFD,
  // numbers that JSON does not have null.
  std::string dump(int indent = -1) const;

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_number() const { return is_number_integer() || is_number_float(); }
  bool is_number_integer() const { return kind_ == Kind::kInteger || kind_ == Kind::kUnsigned; }
  bool is_number_float() const { return kind_ == Kind::kFloat; }
  bool is_string() const { return kind_ == Kind::kText; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }

  // A number of any kind as any other, a text, an array or an object of such. Throws Error.
  template <class T>
  T get() const {
    if constexpr (std::is_same_v<T, Json>) {
      return *this;
    } else if constexpr (std::is_same_v<T, bool>) {
      return boolean();
    } else if constexpr (std::is_same_v<T, std::string>) {
      return text();
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(number());
    } else if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(integer());
    } else if constexpr (json_detail::Map<T>) {
      T map;
      need(Kind::kObject);
      for (size_t i = 0; i < size(); ++i)
        map.emplace(names_[i], values_[i].get<typename T::mapped_type>());
      return map;
    } else {
      T list;
      need(Kind::kArray);
      for (const Json& value : values_)
        list.insert(list.end(), value.get<typename T::value_type>());
      return list;
    }
  }
  template <class T>
  requires json_detail::Number<T> || std::is_same_v<T, std::string> ||
      json_detail::ReadableContainer<T>
  operator T() const { return get<T>(); }

  // ---- arrays and objects
  // ------------------------------------------------------------------------

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  // The values, without the names of an object.
  using value_type = Json;
  using iterator = std::vector<Json>::iterator;
  using const_iterator = std::vector<Json>::const_iterator;
  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;
  const Json& front() const { return element(0); }
  const Json& back() const { return element(size() - 1); }

  // Throws Error where there is none.
  template <std::integral T>
  const Json& at(T i) const {
    return element(static_cast<size_t>(i));
  }
  const Json& at(std::string_view name) const;
  const Json& at(const char* name) const { return at(std::string_view(name)); }
  template <std::integral T>
  const Json& operator[](T i) const {
    return element(static_cast<size_t>(i));
  }
  template <std::integral T>
  Json& operator[](T i) {
    return const_cast<Json&>(element(static_cast<size_t>(i)));
  }
  // A name that is not there: null, and in a value that may change added.
  Json& operator[](const char* name);
  Json& operator[](const std::string& name);
  const Json& operator[](const char* name) const;
  const Json& operator[](const std::string& name) const;

  const_iterator find(std::string_view name) const;
  bool contains(std::string_view name) const;
  // `otherwise` where there is no such name.
  template <class T>
  T value(std::string_view name, T otherwise) const {
    const auto found = find(name);
    return found == end() ? otherwise : found->template get<T>();
  }
  std::string value(std::string_view name, const char* otherwise) const;

  void push_back(Json value);
  void update(const Json& members);
  void erase(std::string_view name);

  // for (auto [name, value] : json.items())
  template <class Value>
  struct Items {
    struct Item {
      const std::string& name;
      Value& value;
    };
    struct Iterator {
      Value* json;
      size_t i;
      Item operator*() const { return {json->names_[i], json->values_[i]}; }
      Iterator& operator++() { return ++i, *this; }
      bool operator!=(const Iterator& other) const { return i != other.i; }
    };
    Value* json;
    Iterator begin() const { return {json, 0}; }
    Iterator end() const { return {json, json->names_.size()}; }
  };
  Items<const Json> items() const { return {this}; }
  Items<Json> items() { return {this}; }

  // Numbers are equal by value, objects whatever their order.
  friend bool operator==(const Json& a, const Json& b) { return a.equals(b); }
  template <class T>
  requires json_detail::Number<T> || std::is_convertible_v<const T&, std::string_view>
  friend bool operator==(const Json& a, const T& b) { return a.equals(Json(b)); }
  // Of numbers; throws Error for anything else.
  template <json_detail::Number T>
  friend std::partial_ordering operator<=>(const Json& a, T b) {
    return a.number() <=> static_cast<double>(b);
  }

 private:
  friend class JsonReader;

  void set_boolean(bool value);
  void set_integer(int64_t value);
  void set_unsigned(uint64_t value);
  void set_float(double value);
  bool boolean() const;
  int64_t integer() const;  // the bits of a larger unsigned one
  double number() const;
  const std::string& text() const;
  void need(Kind kind) const;
  const Json& element(size_t i) const;
  bool equals(const Json& other) const;
  void write(std::string* out, int indent, int depth) const;

  Kind kind_ = Kind::kNull;
  union {
    bool boolean_;
    int64_t integer_ = 0;
    uint64_t unsigned_;
    double float_;
  };
  std::string text_;
  std::vector<std::string> names_;  // of an object's values
  std::vector<Json> values_;
};

std::ostream& operator<<(std::ostream& out, const Json& json);

// The text of a member. Throws Json::Error if there is none.
inline std::string text_of(const Json& object, const char* key) {
  return object.at(key).get<std::string>();
}

}  // namespace tigon
