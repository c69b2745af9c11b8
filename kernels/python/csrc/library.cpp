// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/csrc/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <stdexcept>

namespace tigon::adapter {

namespace {

std::filesystem::path folder_of_adapter() {
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(&load_library), &info);
  return std::filesystem::path(info.dli_fname).parent_path();
}

template <class Function>
void find(void* handle, const std::string& file, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  if (*function == nullptr) throw std::runtime_error(file + " has no " + name);
}

}  // namespace

Library load_library(const std::string& file) {
  const std::filesystem::path path = folder_of_adapter() / file;
  if (!std::filesystem::exists(path)) return {};
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  Library library;
  find(handle, file, "tigon_op_at", &library.op_at);
  find(handle, file, "tigon_workspace", &library.workspace);
  find(handle, file, "tigon_run", &library.run);
  find(handle, file, "tigon_describe", &library.describe);
  find(handle, file, "tigon_shape", &library.shape);
  const tigon_op* first = library.op_at(0);
  if (first == nullptr || first->abi != TIGON_ABI)
    throw std::runtime_error(file + " is not of ABI " + std::to_string(TIGON_ABI) +
                             ", for which this adapter was built");
  return library;
}

int32_t dtype_of(std::string_view name) {
  static constexpr std::string_view names[] = {"f64", "f32", "bf16", "f16", "i64", "i32", "u8"};
  static_assert(std::size(names) == TIGON_U8 + 1);
  const auto* at = std::find(std::begin(names), std::end(names), name);
  if (at == std::end(names)) throw std::runtime_error("there is no dtype " + std::string(name));
  return static_cast<int32_t>(at - std::begin(names));
}

}  // namespace tigon::adapter
