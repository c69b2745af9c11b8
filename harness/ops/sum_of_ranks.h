// SPDX-License-Identifier: Apache-2.0
// What an all-reduce gives, of ranks that are on one device.
#pragma once
#include <cstdint>

#include "kernels/signature/dtype.h"
#include "kernels/signature/status.h"

namespace tigon {

// out [rows, columns] = the sum of parts [ranks, rows, columns]; rows of `out` are `stride` apart.
// f32, bf16 or f16, rounded once.
Status sum_of_ranks(const float* parts, int64_t ranks, int64_t rows, int64_t columns, void* out,
                    DType dtype, int64_t stride, Stream stream);

}  // namespace tigon
