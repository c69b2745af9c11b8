// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace tigon::torch_adapter {

// torch's current stream of a CUDA device, a cudaStream_t. Throws std::runtime_error where this
// torch has no CUDA.
void* current_cuda_stream(int32_t device);

}  // namespace tigon::torch_adapter
