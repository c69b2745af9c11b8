// SPDX-License-Identifier: Apache-2.0
// Tensors without memory.
#include "harness/run/judging/bound_without_memory.h"

#include <algorithm>

namespace tigon {
namespace {

constexpr uintptr_t kAlignment = 256;

uintptr_t bytes_of(const TensorRef& ref) {
  const int64_t elements = ref.shape[0] * ref.stride[0];
  return static_cast<uintptr_t>(std::max<int64_t>(elements, 0)) * size_of(ref.dtype);
}

}  // namespace

Bound bound_without_memory(const Case& c, const OpSpec& op, const Pass& pass) {
  Bound bound;
  bound.values = binding_of(c, op, pass);
  uintptr_t address = kAlignment;
  for (const TensorInfo& info : pass.tensors) {
    if (is_left_out(info, c.options)) continue;
    TensorRef ref = contiguous(info, c.dtype, bound.values);
    const size_t rank = ref.shape.size();
    if (info.is_strided && rank > 1) {
      ref.stride[rank - 2] += c.gap;
      for (size_t d = rank - 2; d-- > 0;) ref.stride[d] = ref.stride[d + 1] * ref.shape[d + 1];
    }
    const auto shift = static_cast<uintptr_t>(shift_of(c, pass, info));
    ref.data = reinterpret_cast<void*>(address + shift * size_of(ref.dtype));
    address += (bytes_of(ref) / kAlignment + 2) * kAlignment;
    bound.tensors[info.name] = std::move(ref);
  }
  bound.scratch.data = reinterpret_cast<void*>(address);
  return bound;
}

}  // namespace tigon
