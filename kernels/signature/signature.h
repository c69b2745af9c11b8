// SPDX-License-Identifier: Apache-2.0
// The vocabulary of an op's signature: axes, symbolic shapes, views, dtype policies and the role of
// every member. A signature is a struct over a dtype policy whose fields(f) gives role, name and
// shape of each member to f; oracle, kernel, baseline, records and documentation all read that
// list. Simple enough for nvcc; knows no CUDA.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/signature/dtype.h"
#include "kernels/signature/status.h"

namespace tigon {

// A named dimension, e.g. {"T", "tokens"}.
struct Axis {
  const char* symbol;
  const char* meaning;
};

// Values of axes and of options by name (an enum option is bound to its index).
using Binding = std::map<std::string, double>;

// The length of an axis of a tensor: an axis of the op, a number, or what a function makes of the
// axes and options of a call, and a text for that.
struct Size {
  using Function = double (*)(const Binding&, Axis);
  const char* text = nullptr;
  Function function = nullptr;
  Axis axis{nullptr, nullptr};  // also the argument of the function
  int number = 0;

  constexpr Size() = default;
  constexpr Size(Axis a) : axis(a) {}           // NOLINT: an axis is a length
  constexpr Size(int value) : number(value) {}  // NOLINT
  constexpr Size(const char* what, Function f, Axis a = {nullptr, nullptr})
      : text(what), function(f), axis(a) {}
};

// An integer expression over axes and options that evaluates and prints.
class Expr {
 public:
  using Function = std::function<double(const Binding&)>;
  Expr() : Expr(0) {}
  Expr(Axis axis)  // NOLINT: an axis is an expression
      : eval_([s = std::string(axis.symbol)](const Binding& b) { return b.at(s); }),
        text_(axis.symbol),
        axis_(axis) {}
  Expr(int value) : Expr(static_cast<double>(value)) {}  // NOLINT
  Expr(double value)                                     // NOLINT
      : eval_([value](const Binding&) { return value; }), text_(number(value)) {}
  Expr(std::string text, Function eval) : eval_(std::move(eval)), text_(std::move(text)) {}
  Expr(const Size& size)  // NOLINT: a length is an expression
      : Expr(size.function != nullptr
                 ? Expr(size.text, [size](const Binding& b) { return size.function(b, size.axis); })
             : size.axis.symbol != nullptr ? Expr(size.axis)
                                           : Expr(size.number)) {}

  double operator()(const Binding& b) const { return eval_(b); }
  int64_t integer(const Binding& b) const { return static_cast<int64_t>(eval_(b)); }
  const std::string& text() const { return text_; }
  // The axis that it is; its symbol is null where it is anything else.
  const Axis& axis() const { return axis_; }

 private:
  static std::string number(double v) {
    const auto i = static_cast<int64_t>(v);
    return static_cast<double>(i) == v ? std::to_string(i) : std::to_string(v);
  }
  Function eval_;
  std::string text_;
  Axis axis_{nullptr, nullptr};
};

inline Expr operator*(const Expr& a, const Expr& b) {
  return {a.text() + "*" + b.text(), [=](const Binding& x) { return a(x) * b(x); }};
}
inline Expr operator/(const Expr& a, const Expr& b) {
  return {a.text() + "/" + b.text(), [=](const Binding& x) { return a(x) / b(x); }};
}
inline Expr operator+(const Expr& a, const Expr& b) {
  return {"(" + a.text() + "+" + b.text() + ")", [=](const Binding& x) { return a(x) + b(x); }};
}

// A tensor in device memory: sizes and strides in elements, the last stride is 1. data == nullptr:
// not given.
template <class T, int N>
struct View {
  using Elem = T;
  static constexpr int kRank = N;
  T* data = nullptr;
  int64_t shape[N] = {};
  int64_t stride[N] = {};

  explicit operator bool() const { return data != nullptr; }
  int64_t size() const {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return n;
  }
  // True when rows follow each other without a gap, so that the tensor is one flat array.
  bool contiguous() const {
    int64_t expect = 1;
    for (int i = N - 1; i >= 0; --i) {
      if (shape[i] != 1 && stride[i] != expect) return false;
      expect *= shape[i];
    }
    return true;
  }
};

// A contiguous view of `data` with the given sizes.
template <class T, class... Sizes>
View<T, static_cast<int>(sizeof...(Sizes))> view(T* data, Sizes... sizes) {
  View<T, static_cast<int>(sizeof...(Sizes))> v{data, {static_cast<int64_t>(sizes)...}, {}};
  int64_t stride = 1;
  for (int i = static_cast<int>(sizeof...(Sizes)) - 1; i >= 0; --i) {
    v.stride[i] = stride;
    stride *= v.shape[i];
  }
  return v;
}

// Memory that a kernel asks for with workspace(args) and the caller gives, 256-byte aligned,
// contents undefined.
struct Scratch {
  void* data = nullptr;
  size_t bytes = 0;
};

// What elements are stored in and what sums are kept in.
template <class Elem_, class Accum_>
struct Policy {
  using Elem = Elem_;
  using Accum = Accum_;
};
using F64 = Policy<double, double>;
using F32 = Policy<float, float>;
using BF16 = Policy<bf16, float>;
using F16 = Policy<f16, float>;

// kSaved is an output that forward keeps for backward.
enum class Role { kIn, kOut, kInOut, kSaved };
constexpr const char* name_of(Role role) {
  switch (role) {
    case Role::kIn:
      return "in";
    case Role::kOut:
      return "out";
    case Role::kInOut:
      return "inout";
    case Role::kSaved:
      return "saved";
  }
  return "?";
}

// A few values, held in place: what a signature says is then constant, and costs a call nothing.
template <class T, size_t kMost>
struct Few {
  T items[kMost] = {};
  size_t count = 0;

  constexpr Few() = default;
  constexpr Few(std::initializer_list<T> list) {
    for (const T& item : list) items[count++] = item;
  }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
  constexpr size_t size() const { return count; }
  constexpr const T& operator[](size_t i) const { return items[i]; }
};
using Sizes = Few<Size, 8>;
using Names = Few<const char*, 16>;

// What a signature says of a tensor, and of an option.
struct TensorFacts {
  const char* name;
  Role role;
  Sizes shape;
  bool is_optional = false;
  bool is_on_request = false;
  const char* gradient_of = nullptr;  // the tensor whose gradient it holds, given or written
  bool is_strided = false;
  Names may_alias = {};
  const char* same_gradient_as = nullptr;  // another input, whose gradient is this one's, too
};
struct OptionFacts {
  const char* name;
  Names choices;  // names of an enum's values in order; empty for numbers
};

template <class Args, class ViewType>
struct Field : TensorFacts {
  using Member =
      ViewType Args::*;  // an alias, because nvcc's front end adds parentheses to the declaration
  Member member;
};
template <class Args, class Value>
struct Option : OptionFacts {
  using Member = Value Args::*;
  Member member;
};

template <class A, class V>
constexpr auto in(V A::*m, const char* name, Sizes shape) {
  return Field<A, V>{{name, Role::kIn, shape}, m};
}
template <class A, class V>
constexpr auto out(V A::*m, const char* name, Sizes shape) {
  return Field<A, V>{{name, Role::kOut, shape}, m};
}
template <class A, class V>
constexpr auto inout(V A::*m, const char* name, Sizes shape) {
  return Field<A, V>{{name, Role::kInOut, shape}, m};
}
template <class A, class V>
constexpr auto saved(V A::*m, const char* name, Sizes shape) {
  return Field<A, V>{{name, Role::kSaved, shape}, m};
}
// The caller may leave this tensor out (data == nullptr).
template <class A, class V>
constexpr auto optional(Field<A, V> f) {
  f.is_optional = true;
  return f;
}
// The same, and a case of the harness leaves it out unless it asks for it.
template <class A, class V>
constexpr auto on_request(Field<A, V> f) {
  f.is_optional = f.is_on_request = true;
  return f;
}
// It holds the gradient of the tensor `of` of this op: given, where the pass takes it, or written.
template <class A, class V>
constexpr auto gradient(const char* of, Field<A, V> f) {
  f.gradient_of = of;
  return f;
}
// An input whose gradient is that of the input `other`: the op sees only their sum.
template <class A, class V>
constexpr auto same_gradient(const char* other, Field<A, V> f) {
  f.same_gradient_as = other;
  return f;
}
// All strides but the last are free: rows may lie apart. The other tensors are contiguous.
template <class A, class V>
constexpr auto strided(Field<A, V> f) {
  f.is_strided = true;
  return f;
}
// An output that may be in the memory of any one of these inputs, element on element. Other tensors
// may not overlap.
template <class A, class V>
constexpr auto may_alias(Names inputs, Field<A, V> f) {
  f.may_alias = inputs;
  return f;
}
template <class A, class V>
constexpr auto option(V A::*m, const char* name, Names choices = {}) {
  return Option<A, V>{{name, choices}, m};
}

template <class F>
inline constexpr bool is_field = false;
template <class A, class V>
inline constexpr bool is_field<Field<A, V>> = true;

struct AnyMember {  // nvcc takes no lambda in a concept
  constexpr void operator()(const auto&) const {}
};
template <class Args>
concept Signature = requires(AnyMember f) {
  Args::fields(f);
};

// Calls f(field) for every tensor of the signature, in order.
template <Signature Args, class F>
constexpr void for_each_field(F&& f) {
  Args::fields([&]<class X>(const X& x) {
    if constexpr (is_field<X>) f(x);
  });
}

// Calls f(option) for every option of the signature, in order.
template <Signature Args, class F>
constexpr void for_each_option(F&& f) {
  Args::fields([&]<class X>(const X& x) {
    if constexpr (!is_field<X>) f(x);
  });
}

// How many tensors and options a signature has.
template <Signature Args>
constexpr size_t field_count() {
  size_t count = 0;
  Args::fields([&](const auto&) { ++count; });
  return count;
}

}  // namespace tigon
