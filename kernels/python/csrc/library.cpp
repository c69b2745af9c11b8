// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/csrc/library.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

namespace tigon::torch_adapter {

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

}  // namespace tigon::torch_adapter
