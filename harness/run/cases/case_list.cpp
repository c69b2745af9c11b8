// SPDX-License-Identifier: Apache-2.0
// Cases, each once.
#include "harness/run/cases/case_list.h"

#include <algorithm>

namespace tigon {

void CaseList::push(const Shape& shape, const OptionSet& options, const std::string& inputs) {
  Case c = base;
  c.axes = shape;
  c.options = options;
  c.inputs = inputs;
  if (options_fit(op, pass, c) && seen_.insert(case_id(c)).second) cases_.push_back(std::move(c));
}

void CaseList::push(const Property& property, const std::vector<Shape>& small) {
  if (!is_chosen(property.policies, base.dtype)) return;
  const bool is_ours = base.impl.starts_with("fused");
  if ((property.of_launcher || property.of_fused) && !is_ours) return;
  const OtherBase restored(this);
  base.property = property.name;
  const std::string& inputs = property.inputs.empty() ? base.inputs : property.inputs;
  std::vector<Shape> shapes = small;
  if (small.size() > 1) shapes.push_back(in_vectors(small.back()));
  if (property.one_shape) shapes = {shapes.back()};
  for (const Shape& shape : shapes)
    for (const OptionSet& options : property.options) push(shape, options, inputs);
}

bool CaseList::gaps_are_free() const {
  return (request.executor.empty() ? default_executor() : request.executor) == "fast";
}

Shape CaseList::in_vectors(Shape shape) const {
  const auto is_along = [&](const std::string& axis) {  // columns of some tensor
    return std::any_of(pass.tensors.begin(), pass.tensors.end(), [&](const TensorInfo& t) {
      const char* symbol = t.shape.empty() ? nullptr : t.shape.back().axis().symbol;
      return symbol != nullptr && axis == symbol;
    });
  };
  for (size_t a = 1; a < op.axes.size(); ++a) {
    const std::string axis = op.axes[a].axis.symbol;
    if (request.axes.count(axis) || !is_along(axis)) continue;
    int64_t& size = shape.at(axis);
    size = (size + 15) / 16 * 16;
  }
  return shape;
}

}  // namespace tigon
