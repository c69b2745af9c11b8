// SPDX-License-Identifier: Apache-2.0
// Some rows and columns of tensors in device memory, read as values.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/run/cases/case.h"

namespace tigon {

// The indices that are chosen along an axis, ascending; an axis that is not named is taken whole.
using Sample = std::map<std::string, std::vector<int64_t>>;

// At most `count` of [0, size): the first, the last and others that the key draws.
std::vector<int64_t> choose_indices(int64_t count, int64_t size, uint64_t key);

// Whether a size is another one where the axis is longer; whether one of the tensor's is.
bool follows(const Expr& size, const Binding& binding, const std::string& axis);
bool has_axis(const TensorInfo& info, const Binding& binding, const std::string& axis);

// The tensor's values at the sample, row-major. An axis of the sample may be its first dimension or
// its last. Throws DeviceError, std::logic_error for another dimension.
std::vector<double> sampled(const TensorInfo& info, const TensorRef& ref, const Binding& binding,
                            const Sample& sample);

}  // namespace tigon
