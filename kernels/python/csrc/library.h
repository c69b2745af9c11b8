// SPDX-License-Identifier: Apache-2.0
// The kernels: a library with the functions of tigon.h, loaded at run time, because host and CUDA
// flavours have the same names and the second need not be there.
#pragma once
#include <string>
#include <string_view>

#include "kernels/call/tigon.h"

namespace tigon::adapter {

struct Library {
  decltype(&tigon_op_at) op_at = nullptr;
  decltype(&tigon_workspace) workspace = nullptr;
  decltype(&tigon_run) run = nullptr;
  decltype(&tigon_describe) describe = nullptr;
  decltype(&tigon_shape) shape = nullptr;
  explicit operator bool() const { return run != nullptr; }
};

// The library of this file name beside the adapter; false where there is no such file. Throws
// std::runtime_error where it is there and cannot be loaded or is of another ABI.
Library load_library(const std::string& file);

// The code of tigon.h, e.g. of "bf16". Throws std::runtime_error where there is none of this name.
int32_t dtype_of(std::string_view name);

}  // namespace tigon::adapter
