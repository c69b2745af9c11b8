// SPDX-License-Identifier: Apache-2.0
// Loads and checks a plug-in library.
#include "harness/plugin/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace tigon::plugin {

namespace {

void require(bool right, const std::string& what) {
  if (!right) throw BadLibrary(what);
}

bool is_name(const char* text) {
  if (text == nullptr || *text == '\0') return false;
  const std::string name = text;
  return name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '_' || c == '-' || c == '.';
         });
}

std::string text_of(const char* text) {
  return text != nullptr ? fmt::format("'{}'", text) : "a null pointer";
}

const char* const kDTypes[] = {"TIGON_F64", "TIGON_F32", "TIGON_BF16", "TIGON_F16"};

// `op` is what tigon_find(name, dtype) answered.
void check_op(const tigon_op& op, const std::string& name, int dtype) {
  const auto require_of = [&](bool right, const std::string& what) {
    require(right, fmt::format("tigon_find(\"{}\", {}): {}", name, kDTypes[dtype], what));
  };
  require_of(op.abi == TIGON_ABI,
             fmt::format("it speaks ABI {}, this tigon speaks {}: build it with this release's "
                         "tigon.h and set abi to TIGON_ABI",
                         op.abi, TIGON_ABI));
  require_of(op.dtype == dtype,
             fmt::format("its op has dtype {}: answer NULL for what there is no op for", op.dtype));
  require_of(
      op.name != nullptr && op.name == name,
      fmt::format("its op is named {}: answer NULL for what there is no op for", text_of(op.name)));
  require_of(is_name(op.implementation),
             fmt::format("implementation is {}: give it 1 to 64 letters, digits, '_', '-' or '.'",
                         text_of(op.implementation)));
  require_of(op.device == TIGON_DEVICE_HOST || op.device == TIGON_DEVICE_CUDA,
             fmt::format("device is {}: set it to TIGON_DEVICE_HOST (0) or TIGON_DEVICE_CUDA (1)",
                         op.device));
  require_of(op.run != nullptr, "run is a null pointer: set it to the function that does the work");
}

// The loader maps what the headers promise; behind the end of the file that is a bus error.
void require_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  Elf64_Ehdr header = {};
  if (error || !file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr))
    return;  // the loader says what it is
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part = {};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + static_cast<size_t>(i) * sizeof part));
    require(static_cast<bool>(file.read(reinterpret_cast<char*>(&part), sizeof part)) &&
                part.p_offset <= bytes && part.p_filesz <= bytes - part.p_offset,
            "it is cut off: its headers name bytes behind the end of the file");
  }
}

using Find = decltype(&tigon_find);

Find find_function(const std::string& path) {
  require_whole(path);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    throw BadLibrary(fmt::format("not a library that can be loaded: {}", why ? why : ""));
  }
  const auto find = reinterpret_cast<Find>(dlsym(handle, "tigon_find"));
  if (find != nullptr) return find;
  require(dlsym(handle, "tigon_plugin_get") == nullptr,
          "it exports tigon_plugin_get, which nothing calls any more: export tigon_find of "
          "kernels/call/tigon.h (harness/plugin/README.md)");
  throw BadLibrary(
      "it has no symbol tigon_find: define the function that kernels/call/tigon.h declares");
}

}  // namespace

Library::Library(const std::string& path, const Json& wanted) {
  const Find find = find_function(path);
  for (const auto& [name, dtypes] : wanted.items())
    for (const Json& code : dtypes) {
      const int dtype = code;
      const tigon_op* op = find(name.c_str(), dtype);
      if (op == nullptr) continue;
      check_op(*op, name, dtype);
      ops_.push_back(op);
    }
  require(!ops_.empty(),
          "it has no op: tigon_find() answered NULL for every op and dtype of ./tigon list");
}

Json Library::description() const {
  Json all = Json::array();
  for (const tigon_op* op : ops_)
    all.push_back({{"name", op->name},
                   {"dtype", op->dtype},
                   {"implementation", op->implementation},
                   {"device", op->device}});
  return all;
}

}  // namespace tigon::plugin
