// SPDX-License-Identifier: Apache-2.0
// torch's tensors through LibTorch's stable C functions, without the wrappers that allocate.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/call/tigon.h"

struct AtenTensorOpaque;  // torch's

namespace tigon::torch_adapter {

struct DeleteTensor {
  void operator()(AtenTensorOpaque* tensor) const;
};
using Tensor = std::unique_ptr<AtenTensorOpaque, DeleteTensor>;

// Throws std::runtime_error where a function of torch failed; torch has printed why.
void check(int32_t code, const char* what);

struct Device {
  int32_t type, index;
  bool operator==(const Device& other) const { return type == other.type && index == other.index; }
};

// What is asked of a tensor; sizes and strides are the tensor's.
struct Layout {
  int64_t rank;
  const int64_t *sizes, *strides;
};

Layout layout_of(const Tensor& tensor);
Device device_of(const Tensor& tensor);
void* data_of(const Tensor& tensor);

// The code of tigon.h; -1 for a dtype that it does not have.
int32_t dtype_of(const Tensor& tensor);

// Without gaps. `dtype` is a code of tigon.h.
Tensor empty(int64_t rank, const int64_t* sizes, int32_t dtype, Device device);

// The same numbers without gaps; autograd does not see it.
Tensor packed_copy(const Tensor& tensor);

// A tensor as an op of this rank takes it: where it has more axes, the first ones become rows.
// False where its strides do not allow that; `is_strided` says whether rows may lie apart. `sizes`
// and `strides` have TIGON_MAX_RANK places; a tensor with more axes than that is refused.
bool view(const Tensor& tensor, int32_t rank, bool is_strided, int64_t* sizes, int64_t* strides,
          tigon_tensor* out);

}  // namespace tigon::torch_adapter
