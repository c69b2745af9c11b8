// SPDX-License-Identifier: Apache-2.0
// What a signature says about a pass, without its C++ types: made from fields(), once per pass.
#pragma once
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/signature/signature.h"

namespace tigon::call {

struct TensorInfo : TensorFacts {
  DType dtype;
};

enum class OptionType { kFloat, kInt, kChoice };

struct OptionInfo : OptionFacts {
  OptionType type;
  double default_value;
  double least, most;  // that its C++ type holds
};

struct PassInfo {
  std::vector<TensorInfo> tensors;  // in the order of a call
  std::vector<OptionInfo> options;

  // Out of line: make_pass_info() has them once per tensor and option of every pass.
  [[gnu::noinline]] void add(const TensorInfo& info) { tensors.push_back(info); }
  [[gnu::noinline]] void add(const OptionInfo& info) { options.push_back(info); }
};

template <class Args, class Value>
OptionInfo option_info(const Option<Args, Value>& option, Value default_value) {
  OptionInfo info{option, OptionType::kFloat, 0, 0, 0};
  if constexpr (std::is_enum_v<Value>) {
    info.type = OptionType::kChoice;
    info.most = static_cast<double>(option.choices.size()) - 1;
  } else {
    if (std::is_integral_v<Value>) info.type = OptionType::kInt;
    info.least = static_cast<double>(std::numeric_limits<Value>::lowest());
    info.most = static_cast<double>(std::numeric_limits<Value>::max());
  }
  info.default_value = static_cast<double>(default_value);
  return info;
}

template <Signature Args>
PassInfo make_pass_info() {
  PassInfo info;
  const Args defaults;
  for_each_field<Args>([&](const auto& field) {
    using View = std::remove_cvref_t<decltype(std::declval<Args&>().*(field.member))>;
    info.add(TensorInfo{field, dtype_of<typename View::Elem>});
  });
  for_each_option<Args>(
      [&](const auto& option) { info.add(option_info(option, defaults.*(option.member))); });
  return info;
}

template <Signature Args>
const PassInfo& pass_info() {
  static const PassInfo info = make_pass_info<Args>();
  return info;
}

}  // namespace tigon::call
