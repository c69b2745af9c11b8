// SPDX-License-Identifier: Apache-2.0
// Parts of a contract as text, for describe.
#pragma once
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon::cli {

std::string shape_of(const TensorInfo& tensor);  // "[T, H]"
// Storage types under the policies, each once: "f32 bf16 f16".
std::string dtypes_of(const TensorInfo& tensor, const std::vector<DType>& policies);
std::string names_of(const std::vector<DType>& types);  // "f32 bf16 f16"
// "may be left out", or "" for a tensor that may not.
const char* optionality_of(const TensorInfo& tensor);
std::string default_of(const OptionInfo& option);
// Least bytes: the contract's, or each input and output once.
std::string bytes_of(const Pass& pass);

}  // namespace tigon::cli
