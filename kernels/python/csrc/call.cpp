// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/csrc/call.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/stableivalue_conversions.h>

#include <optional>
#include <stdexcept>
#include <type_traits>

#include "kernels/python/csrc/stream.h"
#include "kernels/python/csrc/tensor.h"

namespace tigon::torch_adapter {

namespace {

namespace stack_value = torch::stable::detail;  // to() and from()

class Call {
 public:
  Call(const Pass& pass, const Library& library) : pass_(pass), library_(library) {}

  void run(StableIValue* stack) {
    take(stack);  // all of it, before anything can throw
    choose_op();
    for (const int i : pass_.arguments) bind_argument(i);
    call_ = {tensors_,
             options_,
             nullptr,
             0,
             static_cast<int32_t>(pass_.tensors.size()),
             static_cast<int32_t>(pass_.options.size())};
    std::optional<torch::stable::accelerator::DeviceGuard> guard;
    if (device_.type == aoti_torch_device_type_cuda()) guard.emplace(device_.index);
    for (size_t k = 0; k < pass_.results.size(); ++k) make_result(pass_.results[k], &results_[k]);
    add_scratch();
    void* stream = guard ? current_cuda_stream(device_.index) : nullptr;
    refuse_unless_ok(library_.run(op_, &call_, stream));
    for (size_t k = 0, at = 0; k < pass_.results.size(); ++k)
      if (pass_.results[k].over < 0) stack[at++] = stack_value::from(results_[k].release());
  }

 private:
  const TensorPlan& plan(int i) const { return pass_.tensors[static_cast<size_t>(i)]; }

  void take(StableIValue* stack) {
    size_t at = 0;
    for (const int i : pass_.arguments) {
      AtenTensorHandle handle = nullptr;
      if (plan(i).is_optional)
        handle = stack_value::to<std::optional<AtenTensorHandle>>(stack[at++]).value_or(nullptr);
      else
        handle = stack_value::to<AtenTensorHandle>(stack[at++]);
      held_[i].reset(handle);
    }
    for (size_t i = 0; i < pass_.options.size(); ++i, ++at)
      options_[i] = {static_cast<int32_t>(i), 0,
                     pass_.options[i].is_float
                         ? stack_value::to<double>(stack[at])
                         : static_cast<double>(stack_value::to<int64_t>(stack[at]))};
    if (pass_.has_want) want_ = stack_value::to<int64_t>(stack[at]);
  }

  // By the first tensor, whose dtype is that of the activations.
  void choose_op() {
    const int first = pass_.arguments[0];
    dtype_ = dtype_of(held_[first]);
    device_ = device_of(held_[first]);
    op_ = dtype_ >= 0 ? pass_.ops[static_cast<size_t>(dtype_)] : nullptr;
    if (!library_)
      fail("this tigon was built without the library for CUDA; install it where nvcc is");
    if (op_ == nullptr) fail(plan(first).name + " must be float32, bfloat16 or float16");
  }

  void bind_argument(int i) {
    if (held_[i] == nullptr) return;
    if (!(device_of(held_[i]) == device_))
      fail(plan(i).name + " is on another device than " + plan(pass_.arguments[0]).name);
    if (view_of(i)) return;
    held_[i] = packed_copy(held_[i]);
    is_copied_[i] = true;
    view_of(i);
  }

  // Only tensors of rows may have more axes than the op; of others the library says what is wrong.
  bool view_of(int i) {
    const TensorPlan& t = plan(i);
    const auto rank = static_cast<int32_t>(t.has_rows ? t.shape.size() : TIGON_MAX_RANK);
    return view(held_[i], rank, t.is_strided, sizes_[i], strides_[i], &tensors_[i]);
  }

  void make_result(const Result& result, Tensor* made) {
    const int i = result.tensor;
    if (result.over >= 0) {
      if (is_copied_[result.over])
        fail(plan(result.over).name + " has gaps, so nothing can be written over it");
      tensors_[i] = tensors_[result.over];
      return;
    }
    if (result.copy_of >= 0) {
      *made = packed_copy(held_[result.copy_of]);
    } else if (result.wanted_bit >= 0 && (want_ >> result.wanted_bit & 1) == 0) {
      const int64_t none = 0;
      *made = empty(1, &none, dtype_of_tensor(i), device_);
      return;
    } else {
      int64_t sizes[64];
      const int64_t rank = shape_of(i, sizes);
      *made = empty(rank, sizes, dtype_of_tensor(i), device_);
    }
    view(*made, static_cast<int32_t>(plan(i).shape.size()), true, sizes_[i], strides_[i],
         &tensors_[i]);
  }

  int32_t dtype_of_tensor(int i) const { return plan(i).dtype[static_cast<size_t>(dtype_)]; }

  // The axes of a result in torch: rows have the axes that the first tensor has in their place.
  int64_t shape_of(int i, int64_t* sizes) {
    const TensorPlan& t = plan(i);
    int64_t own[TIGON_MAX_RANK];
    sizes_of(i, own);
    const int first = pass_.arguments[0];
    const Layout lead = layout_of(held_[first]);
    const int64_t extra = lead.rank - static_cast<int64_t>(plan(first).shape.size());
    int64_t rank = 0;
    size_t axis = 0;
    if (t.has_rows && t.shape.size() > 1)
      for (axis = 1; rank <= extra; ++rank) sizes[rank] = lead.sizes[rank];
    for (; axis < t.shape.size(); ++axis) sizes[rank++] = own[axis];
    return rank;
  }

  void sizes_of(int i, int64_t* sizes) {
    const TensorPlan& t = plan(i);
    bool known = true;
    for (size_t d = 0; d < t.shape.size(); ++d) {
      const TensorPlan::Source& source = t.sources[d];
      known = known && source.tensor >= 0 && source.axis < tensors_[source.tensor].rank;
      if (known) sizes[d] = tensors_[source.tensor].sizes[source.axis];
    }
    int32_t rank = 0;
    known = known || library_.shape(op_, &call_, i, sizes, &rank).code == TIGON_OK;
    for (size_t d = 0; d < t.shape.size(); ++d) known = known && sizes[d] >= 0;
    if (known) return;
    refuse_unless_ok(library_.run(op_, &call_, nullptr));  // it says what is wrong
    fail("the call does not say the shape of " + t.name);
  }

  void add_scratch() {
    call_.scratch_bytes = library_.workspace(op_, &call_);
    if (call_.scratch_bytes == 0) return;
    const auto bytes = static_cast<int64_t>(call_.scratch_bytes) + 256;
    scratch_ = empty(1, &bytes, TIGON_U8, device_);
    const auto address = reinterpret_cast<uintptr_t>(data_of(scratch_));
    call_.scratch = reinterpret_cast<void*>((address + 255) & ~uintptr_t{255});
  }

  void refuse_unless_ok(const tigon_status& status) const {
    if (status.code != TIGON_OK) throw std::runtime_error(status.message);
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("tigon::" + pass_.name + ": " + why);
  }

  const Pass& pass_;
  const Library& library_;
  const tigon_op* op_ = nullptr;
  int32_t dtype_ = -1;
  Device device_ = {};
  int64_t want_ = 0;
  Tensor held_[kMostTensors];  // arguments
  bool is_copied_[kMostTensors] = {};
  Tensor results_[kMostTensors];
  Tensor scratch_;
  tigon_tensor tensors_[kMostTensors] = {};
  int64_t sizes_[kMostTensors][TIGON_MAX_RANK], strides_[kMostTensors][TIGON_MAX_RANK];
  tigon_option options_[kMostOptions];
  tigon_call call_ = {};
};

}  // namespace

static_assert(std::is_same_v<StackValue, StableIValue>);

void call(const Pass& pass, const Library& library, StackValue* stack) {
  Call(pass, library).run(stack);
}

}  // namespace tigon::torch_adapter
