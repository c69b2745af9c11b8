// SPDX-License-Identifier: Apache-2.0
// Why a call does not fit its op's signature, and the sizes that would.
#include "kernels/call/explain.h"

#include <cmath>
#include <set>
#include <sstream>

namespace tigon::call {

namespace {

// Text of its parts.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

std::string list(const int64_t* sizes, size_t rank) {
  std::string s = "[";
  for (size_t i = 0; i < rank; ++i) s += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return s + "]";
}

std::string symbols(const Sizes& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i > 0 ? ", " : "") + Expr(shape[i]).text();
  return s + "]";
}

const tigon_tensor* given(const tigon_call& call, size_t i) {
  if (static_cast<int64_t>(i) >= call.tensor_count) return nullptr;
  return call.tensors[i].sizes != nullptr ? &call.tensors[i] : nullptr;
}

const char* dtype_name(int32_t code) {
  const bool known = code >= 0 && code <= static_cast<int32_t>(DType::kU8);
  return known ? name_of(static_cast<DType>(code)) : "no dtype of Tigon";
}

// Axes and options of a call by name, as shapes take them, and who gave an axis its size.
struct Bindings {
  Binding values;
  std::map<std::string, std::string> from;  // "x (axis 1)"
  std::set<std::string> axes;               // all of the pass
};

void bind_options(const PassInfo& info, const tigon_call& call, Binding* values) {
  for (const OptionInfo& option : info.options) (*values)[option.name] = option.default_value;
  for (int32_t i = 0; i < call.option_count; ++i)
    (*values)[info.options[static_cast<size_t>(call.options[i].index)].name] =
        call.options[i].value;
}

// The axes that a size of a tensor is.
void bind_named_axes(const PassInfo& info, const tigon_call& call, Bindings* b) {
  for (size_t i = 0; i < info.tensors.size(); ++i) {
    const tigon_tensor* tensor = given(call, i);
    for (size_t d = 0; d < info.tensors[i].shape.size(); ++d) {
      const char* symbol = Expr(info.tensors[i].shape[d]).axis().symbol;
      if (symbol == nullptr) continue;
      b->axes.insert(symbol);
      if (tensor == nullptr || b->values.count(symbol) > 0) continue;
      b->values[symbol] = static_cast<double>(tensor->sizes[d]);
      b->from[symbol] = text(info.tensors[i].name, " (axis ", d, ")");
    }
  }
}

// The only axis that has no size yet, from an expression that is proportional to it.
void solve_last_axis(const PassInfo& info, const tigon_call& call, Bindings* b) {
  std::string open;
  for (const std::string& axis : b->axes)
    if (b->values.count(axis) == 0) {
      if (!open.empty()) return;
      open = axis;
    }
  if (open.empty()) return;
  for (size_t i = 0; i < info.tensors.size(); ++i) {
    const tigon_tensor* tensor = given(call, i);
    if (tensor == nullptr) continue;
    for (size_t d = 0; d < info.tensors[i].shape.size(); ++d) {
      const Expr size = info.tensors[i].shape[d];
      Binding trial = b->values;
      trial[open] = 1;
      const double factor = size(trial);
      trial[open] = 2;
      if (!(factor > 0) || size(trial) != 2 * factor) continue;
      b->values[open] = static_cast<double>(tensor->sizes[d]) / factor;
      b->from[open] = text(info.tensors[i].name, " (axis ", d, ")");
      return;
    }
  }
}

Bindings bind(const PassInfo& info, const tigon_call& call) {
  Bindings b;
  bind_options(info, call, &b.values);
  bind_named_axes(info, call, &b);
  solve_last_axis(info, call, &b);
  return b;
}

std::string wrong_tensor(const TensorInfo& info, const tigon_tensor* tensor) {
  if (tensor == nullptr)
    return info.is_optional ? "" : text(info.name, " is missing; it is ", symbols(info.shape));
  if (tensor->dtype != static_cast<int32_t>(info.dtype))
    return text(info.name, " is ", dtype_name(tensor->dtype), ", but must be ",
                name_of(info.dtype));
  const size_t rank = info.shape.size();
  if (tensor->rank != static_cast<int32_t>(rank))
    return text(info.name, " has ", tensor->rank, " axes, but must have ", rank, ": ",
                symbols(info.shape));
  for (size_t d = 0; d < rank; ++d)
    if (tensor->sizes[d] < 0)
      return text(info.name, " is ", list(tensor->sizes, rank), ": its axis ", d, " is negative");
  if (rank > 0 && tensor->strides != nullptr && tensor->strides[rank - 1] != 1 &&
      tensor->sizes[rank - 1] > 1)
    return text(info.name, " has stride ", tensor->strides[rank - 1], " along its last axis, ",
                Expr(info.shape[rank - 1]).text(), ", but must have 1");
  return "";
}

std::string null_tensor(const TensorInfo& info, const tigon_tensor* tensor) {
  if (tensor == nullptr || tensor->data != nullptr || info.is_optional) return "";
  for (int32_t d = 0; d < tensor->rank; ++d)
    if (tensor->sizes[d] == 0) return "";
  return text(info.name, " has no memory; only optional tensors may be left out");
}

std::string wrong_option(const PassInfo& info, const tigon_option& option) {
  if (option.index < 0 || option.index >= static_cast<int32_t>(info.options.size()))
    return text("there is no option ", option.index, "; the last is ",
                static_cast<int64_t>(info.options.size()) - 1);
  const OptionInfo& known = info.options[static_cast<size_t>(option.index)];
  const bool whole = known.type == OptionType::kFloat || std::floor(option.value) == option.value;
  const bool in_range = known.type == OptionType::kFloat ||
                        (option.value >= known.least && option.value <= known.most);
  if (whole && in_range) return "";
  if (known.type == OptionType::kInt)
    return text("the option ", known.name, " is ", option.value, ", but must be a whole number");
  std::string choices;
  for (size_t i = 0; i < known.choices.size(); ++i)
    choices += text(i > 0 ? ", " : "", i, " (", known.choices[i], ")");
  return text("the option ", known.name, " is ", option.value, ", but must be one of ", choices);
}

std::string wrong_size(const TensorInfo& info, const tigon_tensor& tensor, const Bindings& b) {
  const size_t rank = info.shape.size();
  for (size_t d = 0; d < rank; ++d) {
    const Expr size = info.shape[d];
    const int64_t wanted = size.integer(b.values);
    if (wanted == tensor.sizes[d]) continue;
    std::string s = text(info.name, " is ", list(tensor.sizes, rank), ", but its axis ", d);
    if (wanted < 0) return s + text(", ", size.text(), ", does not fit the options");
    s += text(" must be ", wanted, ": it is ", size.text());
    const char* symbol = size.axis().symbol;
    return symbol == nullptr ? s : s + text(", which is ", wanted, " by ", b.from.at(symbol));
  }
  return "";
}

bool is_bound(const Bindings& b) {
  for (const std::string& axis : b.axes)
    if (b.values.count(axis) == 0) return false;
  return true;
}

}  // namespace

std::string explain(const PassInfo& info, const tigon_call& call) {
  if (call.tensor_count < 0 || call.option_count < 0) return "a count is negative";
  if (call.tensor_count > static_cast<int32_t>(info.tensors.size()))
    return text("the call has ", call.tensor_count, " tensors, but the op takes ",
                info.tensors.size());
  std::string wrong;
  for (size_t i = 0; i < info.tensors.size() && wrong.empty(); ++i)
    wrong = wrong_tensor(info.tensors[i], given(call, i));
  for (int32_t i = 0; i < call.option_count && wrong.empty(); ++i)
    wrong = wrong_option(info, call.options[i]);
  if (!wrong.empty()) return wrong;
  const Bindings b = bind(info, call);
  if (!is_bound(b)) return "";
  for (size_t i = 0; i < info.tensors.size() && wrong.empty(); ++i)
    if (const tigon_tensor* tensor = given(call, i))
      wrong = wrong_size(info.tensors[i], *tensor, b);
  for (size_t i = 0; i < info.tensors.size() && wrong.empty(); ++i)
    wrong = null_tensor(info.tensors[i], given(call, i));
  return wrong;
}

std::optional<std::vector<int64_t>> sizes_of(const PassInfo& info, const tigon_call& call,
                                             size_t tensor) {
  for (int32_t i = 0; i < call.option_count; ++i)
    if (!wrong_option(info, call.options[i]).empty()) return {};
  for (size_t i = 0; i < info.tensors.size(); ++i) {
    const tigon_tensor* t = given(call, i);
    if (t != nullptr && t->rank != static_cast<int32_t>(info.tensors[i].shape.size())) return {};
  }
  const Bindings b = bind(info, call);
  if (!is_bound(b)) return {};
  std::vector<int64_t> sizes;
  for (const Expr size : info.tensors[tensor].shape) sizes.push_back(size.integer(b.values));
  return sizes;
}

}  // namespace tigon::call
