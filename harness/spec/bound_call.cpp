// SPDX-License-Identifier: Apache-2.0
// The harness' memory and values as a call of tigon.h.
#include "harness/spec/bound_call.h"

namespace tigon {

BoundCall::BoundCall(const call::PassInfo& pass, const Bound& bound) {
  tensors_.reserve(pass.tensors.size());
  for (const call::TensorInfo& info : pass.tensors) {
    const auto found = bound.tensors.find(info.name);
    if (found == bound.tensors.end()) {
      tensors_.push_back({});
      continue;
    }
    const TensorRef& t = found->second;
    tensors_.push_back({t.data, t.shape.data(), t.stride.data(), static_cast<int32_t>(t.dtype),
                        static_cast<int32_t>(t.shape.size())});
  }
  for (size_t i = 0; i < pass.options.size(); ++i) {
    const call::OptionInfo& option = pass.options[i];
    const auto found = bound.values.find(option.name);
    if (found != bound.values.end() && found->second != option.default_value)
      options_.push_back({static_cast<int32_t>(i), 0, found->second});
  }
  call_ = {tensors_.data(),
           options_.data(),
           bound.scratch.data,
           bound.scratch.bytes,
           static_cast<int32_t>(tensors_.size()),
           static_cast<int32_t>(options_.size())};
}

}  // namespace tigon
