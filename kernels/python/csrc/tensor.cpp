// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/csrc/tensor.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <stdexcept>

namespace tigon::torch_adapter {

namespace {

// No gradient is recorded while it lives.
class NoGrad {
 public:
  NoGrad() : before_(aoti_torch_grad_mode_is_enabled()) { aoti_torch_grad_mode_set_enabled(false); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  ~NoGrad() { aoti_torch_grad_mode_set_enabled(before_); }

 private:
  bool before_;
};

// torch's code of each dtype of tigon.h.
const int32_t* torch_dtypes() {
  static const int32_t codes[] = {aoti_torch_dtype_float64(),  aoti_torch_dtype_float32(),
                                  aoti_torch_dtype_bfloat16(), aoti_torch_dtype_float16(),
                                  aoti_torch_dtype_int64(),    aoti_torch_dtype_int32(),
                                  aoti_torch_dtype_uint8()};
  return codes;
}

bool is_packed(const Layout& t) {
  int64_t expected = 1;
  for (int64_t i = t.rank - 1; i >= 0; --i) {
    if (t.sizes[i] != 1 && t.strides[i] != expected) return t.sizes[i] == 0;
    expected *= t.sizes[i];
  }
  return true;
}

// The first `lead` axes as one: its size and stride. False where they are not evenly spaced.
bool merge(const Layout& t, int64_t lead, int64_t* size, int64_t* stride) {
  *size = 1;
  *stride = 0;
  for (int64_t i = lead - 1; i >= 0; --i) {
    if (t.sizes[i] == 1) continue;
    if (*size == 1) *stride = t.strides[i];
    if (t.strides[i] != *stride * *size && t.sizes[i] != 0) return false;
    *size *= t.sizes[i];
  }
  return true;
}

}  // namespace

void DeleteTensor::operator()(AtenTensorOpaque* tensor) const {
  aoti_torch_delete_tensor_object(tensor);
}

void check(int32_t code, const char* what) {
  if (code != 0) throw std::runtime_error(std::string("tigon: torch could not ") + what);
}

Layout layout_of(const Tensor& tensor) {
  Layout t = {};
  int64_t *sizes = nullptr, *strides = nullptr;
  check(aoti_torch_get_dim(tensor.get(), &t.rank), "tell a tensor's rank");
  check(aoti_torch_get_sizes(tensor.get(), &sizes), "tell a tensor's sizes");
  check(aoti_torch_get_strides(tensor.get(), &strides), "tell a tensor's strides");
  t.sizes = sizes;
  t.strides = strides;
  return t;
}

Device device_of(const Tensor& tensor) {
  Device device = {};
  check(aoti_torch_get_device_type(tensor.get(), &device.type), "tell a tensor's device");
  check(aoti_torch_get_device_index(tensor.get(), &device.index), "tell a tensor's device");
  return device;
}

void* data_of(const Tensor& tensor) {
  void* data = nullptr;
  check(torch_get_mutable_data_ptr(tensor.get(), &data), "tell a tensor's address");
  return data;
}

int32_t dtype_of(const Tensor& tensor) {
  int32_t code = -1;
  check(aoti_torch_get_dtype(tensor.get(), &code), "tell a tensor's dtype");
  const int32_t* known = torch_dtypes();
  const int32_t* at = std::find(known, known + TIGON_U8 + 1, code);
  return at == known + TIGON_U8 + 1 ? -1 : static_cast<int32_t>(at - known);
}

Tensor empty(int64_t rank, const int64_t* sizes, int32_t dtype, Device device) {
  int64_t strides[64] = {};
  int64_t stride = 1;
  for (int64_t i = rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  AtenTensorHandle made = nullptr;
  check(aoti_torch_empty_strided(rank, sizes, strides, torch_dtypes()[dtype], device.type,
                                 device.index, &made),
        "allocate a tensor");
  return Tensor(made);
}

Tensor packed_copy(const Tensor& tensor) {
  const NoGrad no_grad;
  const Layout t = layout_of(tensor);
  Tensor copy = empty(t.rank, t.sizes, dtype_of(tensor), device_of(tensor));
  check(aoti_torch_copy_(copy.get(), tensor.get(), 0), "copy a tensor");
  return copy;
}

bool view(const Tensor& tensor, int32_t rank, bool is_strided, int64_t* sizes, int64_t* strides,
          tigon_tensor* out) {
  const Layout t = layout_of(tensor);
  const bool merges = t.rank > rank && rank > 0;
  const int64_t lead = merges ? t.rank - rank + 1 : 0;
  const int64_t axes = merges ? rank : t.rank;
  bool fits = is_strided || is_packed(t);
  if (merges) fits = merge(t, lead, &sizes[0], &strides[0]) && fits;
  for (int64_t i = merges ? 1 : 0; i < axes; ++i) {
    sizes[i] = t.sizes[t.rank - axes + i];
    strides[i] = t.strides[t.rank - axes + i];
  }
  // An axis of one element may have any stride, and where it is the last it is 1.
  if (axes > 0 && sizes[axes - 1] == 1) strides[axes - 1] = 1;
  fits = fits && (axes == 0 || sizes[axes - 1] <= 1 || strides[axes - 1] == 1);
  // Rows that share memory (an expanded tensor) are no rows that lie apart.
  for (int64_t i = 0; i + 1 < axes; ++i)
    if (sizes[i] == 1)
      strides[i] = strides[i + 1] * sizes[i + 1];
    else
      fits = fits && strides[i] != 0;
  *out = {data_of(tensor), sizes, strides, dtype_of(tensor), static_cast<int32_t>(axes)};
  return fits;
}

}  // namespace tigon::torch_adapter
