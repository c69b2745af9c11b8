// SPDX-License-Identifier: Apache-2.0
// One pointwise cuDNN operation at a time, as an eager framework calls it: a graph of a single node
// through the backend API, compiled once for its sizes and types.
#pragma once
#include <cudnn.h>

#include <vector>

#include "reference/naive/eager.h"

namespace tigon::naive {

// Throws Failure with cuDNN's own words.
void check(cudnnStatus_t status, const char* what);

// The calling thread's handle, which works on `stream`.
cudnnHandle_t cudnn_handle(Stream stream);

struct Operand {
  DType type = DType::kF32;
  const void* data = nullptr;  // on the host when by_value
  std::vector<int64_t> sizes, strides;
  bool by_value = false;
};

// y = mode(x), y = mode(x, b), or dx = mode(x, dy) for the derivative of an activation.
struct Pointwise {
  cudnnPointwiseMode_t mode{};
  bool derivative = false;
  std::vector<Operand> operands;  // the inputs, then the output
};

// Compiles the operation unless this thread has done so for the same sizes, strides, types and
// alignments, and enqueues it. Arithmetic is fp32.
void run(const Pointwise& operation, Stream stream);

}  // namespace tigon::naive
