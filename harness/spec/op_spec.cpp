// SPDX-License-Identifier: Apache-2.0
// Look-up of contracts.
#include "harness/spec/op_spec.h"

#include <algorithm>

namespace tigon {

bool is_library(std::string_view implementation) {
  return implementation == "naive" || implementation == "cudnn";
}

bool is_library(const Implementation& implementation) { return is_library(implementation.name); }

std::string known_miss(const Implementation& implementation, const std::string& inputs,
                       DType dtype) {
  for (const KnownMiss& miss : implementation.known_misses)
    if (miss.inputs == inputs && std::count(miss.policies.begin(), miss.policies.end(), dtype) > 0)
      return miss.reason;
  return "";
}

bool is_selected(const Implementation& implementation, const std::vector<std::string>& names) {
  if (names.empty()) return implementation.absent.empty();
  return std::find(names.begin(), names.end(), implementation.name) != names.end();
}

bool has_strided(const Pass& pass) {
  return std::any_of(pass.tensors.begin(), pass.tensors.end(),
                     [](const TensorInfo& t) { return t.is_strided; });
}

bool has_alias(const Pass& pass) {
  return std::any_of(pass.tensors.begin(), pass.tensors.end(),
                     [](const TensorInfo& t) { return !t.may_alias.empty(); });
}

const OpSpec* find_op(const std::string& name) {
  for (const OpSpec& op : all_ops())
    if (op.name == name) return &op;
  return nullptr;
}

std::vector<std::map<std::string, int64_t>> further_shapes(const OpSpec& op, DType dtype) {
  std::vector<std::map<std::string, int64_t>> shapes = op.further_shapes;
  if (op.further_by_bytes && dtype == DType::kF32)
    for (auto& shape : shapes) {
      int64_t& columns = shape[op.axes.back().axis.symbol];
      columns = columns / 2 | 1;  // odd as well: rows that are aligned each in another way
    }
  if (dtype == op.policies.front())
    shapes.insert(shapes.end(), op.further_shapes_of_one_type.begin(),
                  op.further_shapes_of_one_type.end());
  return shapes;
}

}  // namespace tigon
