// SPDX-License-Identifier: Apache-2.0
// The function is in the part of torch that one for CPUs does not have, so it is looked up.
#include "kernels/python/csrc/stream.h"

#include <dlfcn.h>

#include <stdexcept>

namespace tigon::torch_adapter {

namespace {

using CurrentStream = int32_t (*)(int32_t device, void** stream);

CurrentStream find_current_stream() {
  void* torch_cuda = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  if (torch_cuda == nullptr) return nullptr;
  return reinterpret_cast<CurrentStream>(dlsym(torch_cuda, "aoti_torch_get_current_cuda_stream"));
}

}  // namespace

void* current_cuda_stream(int32_t device) {
  static const CurrentStream current = find_current_stream();
  void* stream = nullptr;
  if (current == nullptr || current(device, &stream) != 0)
    throw std::runtime_error("tigon: this torch does not tell its CUDA stream");
  return stream;
}

}  // namespace tigon::torch_adapter
