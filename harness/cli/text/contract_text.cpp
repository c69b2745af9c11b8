// SPDX-License-Identifier: Apache-2.0
// Parts of a contract as text.
#include "harness/cli/text/contract_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tigon::cli {

std::string shape_of(const TensorInfo& tensor) {
  std::vector<std::string> sizes;
  for (const Expr& size : tensor.shape) sizes.push_back(size.text());
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string dtypes_of(const TensorInfo& tensor, const std::vector<DType>& policies) {
  std::vector<std::string> names;
  for (const DType policy : policies)
    if (const auto found = tensor.dtype.find(policy); found != tensor.dtype.end())
      if (const std::string name = name_of(found->second); names.empty() || names.back() != name)
        names.push_back(name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string names_of(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (const DType type : types) names.push_back(name_of(type));
  return fmt::format("{}", fmt::join(names, " "));
}

const char* optionality_of(const TensorInfo& tensor) {
  if (tensor.is_on_request) return "left out unless asked for";
  return tensor.is_optional ? "may be left out" : "";
}

std::string default_of(const OptionInfo& option) {
  if (option.choices.empty()) return fmt::format("{:g}", option.default_value);
  return option.choices.at(static_cast<size_t>(option.default_value));
}

// Least bytes: the contract's, or each input and output once.
std::string bytes_of(const Pass& pass) {
  if (pass.bytes) return pass.bytes->text();
  std::vector<std::string> terms;
  for (const TensorInfo& t : pass.tensors) {
    if (t.is_on_request) continue;
    std::vector<std::string> factors = {fmt::format("size({})", t.name)};
    if (t.role == Role::kInOut) factors.insert(factors.begin(), "2");
    terms.push_back(fmt::format("{}", fmt::join(factors, "*")));
  }
  return fmt::format("{}", fmt::join(terms, " + "));
}

}  // namespace tigon::cli
