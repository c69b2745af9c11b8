// SPDX-License-Identifier: Apache-2.0
// Between doubles and the bytes of a stored tensor.
#pragma once
#include <cstddef>
#include <vector>

#include "kernels/signature/dtype.h"

namespace tigon {

// Values rounded to the type, packed.
std::vector<std::byte> narrow(const std::vector<double>& values, DType type);
// The values of `count` packed elements; exact (integers up to 2^53).
std::vector<double> widen(const std::byte* bytes, size_t count, DType type);

}  // namespace tigon
