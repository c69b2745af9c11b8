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
#include <vector>

namespace tigon::plugin {

namespace {

constexpr int kMostKernels = 1024;
constexpr int kMostDTypes = 16;

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

void require_size(const std::string& what, size_t got, size_t want) {
  require(got >= want,
          fmt::format("{}.size is {}, ABI {} has {} bytes: set it to sizeof({}) of the same "
                      "tigon_plugin.h",
                      what, got, TIGON_PLUGIN_ABI, want, what));
}

void check_kernel(const tigon_kernel* kernel, int index) {
  const std::string which = fmt::format("kernel {}", index);
  require(kernel != nullptr, which + ": a null pointer");
  require_size("tigon_kernel", kernel->size, sizeof(tigon_kernel));
  require(is_name(kernel->op), which + ": no name of an op");
  require(is_name(kernel->pass), which + ": no name of a pass");
  require(is_name(kernel->name),
          which + ": its name must have letters, digits, '_', '-' or '.', at most 64");
  const std::string name =
      fmt::format("{} ({} {} {})", which, kernel->op, kernel->pass, kernel->name);
  require(kernel->device == TIGON_DEVICE_HOST || kernel->device == TIGON_DEVICE_CUDA,
          fmt::format("{}: device {} is neither TIGON_DEVICE_HOST (0) nor TIGON_DEVICE_CUDA (1)",
                      name, kernel->device));
  require(
      kernel->dtypes != nullptr && kernel->dtype_count > 0 && kernel->dtype_count <= kMostDTypes,
      fmt::format("{}: it has {} dtypes; give 1 to {}", name, kernel->dtype_count, kMostDTypes));
  for (int d = 0; d < kernel->dtype_count; ++d)
    require(kernel->dtypes[d] >= TIGON_F64 && kernel->dtypes[d] <= TIGON_U8,
            fmt::format("{}: no dtype has the code {}; TIGON_F32 is 1, TIGON_BF16 2, TIGON_F16 3",
                        name, kernel->dtypes[d]));
  require(kernel->run != nullptr, name + ": run is a null pointer");
}

void check_plugin(const tigon_plugin* plugin) {
  require(plugin != nullptr,
          fmt::format("tigon_plugin_get({}) returned a null pointer: it does not "
                      "speak this ABI",
                      TIGON_PLUGIN_ABI));
  require(plugin->abi == TIGON_PLUGIN_ABI,
          fmt::format("it speaks ABI {}, this tigon speaks {}: build it with this release's "
                      "tigon_plugin.h",
                      plugin->abi, TIGON_PLUGIN_ABI));
  require_size("tigon_plugin", plugin->size, sizeof(tigon_plugin));
  require(plugin->kernel_count > 0 && plugin->kernel_count <= kMostKernels &&
              plugin->kernels != nullptr,
          fmt::format("it has {} kernels; give 1 to {}", plugin->kernel_count, kMostKernels));
  for (int i = 0; i < plugin->kernel_count; ++i) check_kernel(plugin->kernels[i], i);
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

const char* text_or(const char* text, const char* otherwise) { return text ? text : otherwise; }

}  // namespace

Library::Library(const std::string& path) {
  require_whole(path);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(handle != nullptr,
          fmt::format("not a library that can be loaded: {}", text_or(dlerror(), "")));
  using Get = const tigon_plugin* (*)(uint32_t);
  const auto get = reinterpret_cast<Get>(dlsym(handle, TIGON_PLUGIN_SYMBOL));
  require(get != nullptr, "it has no symbol " TIGON_PLUGIN_SYMBOL
                          " (in C++: extern \"C\", with TIGON_PLUGIN_EXPORT)");
  const tigon_plugin* plugin = get(TIGON_PLUGIN_ABI);
  check_plugin(plugin);
  plugin_ = plugin;
}

Json Library::description() const {
  Json kernels = Json::array();
  for (size_t i = 0; i < this->kernels(); ++i) {
    const tigon_kernel& k = kernel(i);
    kernels.push_back({{"op", k.op},
                       {"pass", k.pass},
                       {"name", k.name},
                       {"device", k.device},
                       {"dtypes", std::vector<int>(k.dtypes, k.dtypes + k.dtype_count)},
                       {"workspace", k.workspace != nullptr},
                       {"prepare", k.prepare != nullptr}});
  }
  return {{"name", text_or(plugin_->name, "")},
          {"version", text_or(plugin_->version, "")},
          {"kernels", std::move(kernels)}};
}

}  // namespace tigon::plugin
