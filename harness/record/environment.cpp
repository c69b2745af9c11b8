// SPDX-License-Identifier: Apache-2.0
// What a run ran on.
#include "harness/record/environment.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/Version.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/detail/abi_macros.hpp>

#include "harness/record/build_hash.h"
#include "harness/record/build_info.h"
#include "harness/record/run_id.h"

extern char** environ;

namespace tigon {
namespace {

// The rest of the first line of `path` that begins with `key`, after `separator`; empty if there is
// none.
std::string value_in_file(const char* path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t at = line.find(separator, key.size());
    if (at == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t\"", at + 1);
    if (start == std::string::npos) return "";
    return line.substr(start, line.find_last_not_of(" \t\"") + 1 - start);
  }
  return "";
}

// Standard output of a command without its last newline, or nothing when it fails.
bool output_of(const std::string& command, std::string& output) {
  output.clear();
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return false;
  std::array<char, 256> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), n);
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return pclose(pipe) == 0;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Result of a `size_t f()` of a shared library, e.g. cudnnGetVersion; null when it is not there.
Json version_of(std::initializer_list<const char*> libraries, const char* symbol) {
  for (const char* name : libraries) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    if (void* function = dlsym(library, symbol)) return reinterpret_cast<size_t (*)()>(function)();
  }
  return nullptr;
}

}  // namespace

Commit current_commit() {
  // A copy of a tree has no history or an old one: whoever copied it may say.
  const char* told = std::getenv("TIGON_COMMIT");
  if (told != nullptr && *told != '\0') return {told, false};
  const BuildInfo build = build_info();
  const std::string git = fmt::format("git -C '{}' ", build.source_dir);
  Commit now;
  std::string changes;
  if (!output_of(git + "rev-parse HEAD", now.commit)) return {build.commit, false};
  if (output_of(git + "status --porcelain --untracked-files=no", changes))
    now.dirty = !changes.empty();
  return now;
}

Json host_block() {
  utsname system{};
  uname(&system);
  const long pages = sysconf(_SC_PHYS_PAGES);
  return {{"name", system.nodename},
          {"os", value_in_file("/etc/os-release", "PRETTY_NAME", '=')},
          {"kernel", fmt::format("{} {}", system.sysname, system.release)},
          {"cpu", value_in_file("/proc/cpuinfo", "model name", ':')},
          {"cores", usable_cores()},
          {"memory_bytes", static_cast<int64_t>(pages) * sysconf(_SC_PAGESIZE)}};
}

Json build_block() {
  const BuildInfo build = build_info();
  Json block = {{"preset", build.preset},
                {"compiler", build.compiler},
                {"flags", build.flags},
                {"type", build.type},
                {"hash", build_hash()}};
  if (!build.cuda_compiler.empty()) block["cuda_compiler"] = build.cuda_compiler;
  return block;
}

Json libraries_block() {
  const BuildInfo build = build_info();
  const bool cuda = !build.cuda_compiler.empty();
  return {
      {"eigen", build.eigen},
      {"googletest", build.googletest},
      {"benchmark", build.benchmark},
      {"fmt",
       fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                    NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
      {"cli11", CLI11_VERSION},
      {"cudnn", cuda ? version_of({"libcudnn.so.9", "libcudnn.so"}, "cudnnGetVersion") : Json()},
      {"cublas",
       cuda ? version_of({"libcublasLt.so.13", "libcublasLt.so"}, "cublasLtGetVersion") : Json()}};
}

Json environment_block() {
  constexpr const char* kPrefixes[] = {"CUDA_",
                                       "CUBLAS_",
                                       "CUDNN_",
                                       "NVIDIA_",
                                       "NCCL_",
                                       "TIGON_",
                                       "OMP_",
                                       "GTEST_",
                                       "SLURM_ARRAY_",
                                       "CI=",
                                       "GLIBC_",
                                       "MALLOC_",
                                       "SOURCE_DATE_EPOCH="};
  Json block = Json::object();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const size_t equals = text.find('=');
    for (const char* prefix : kPrefixes)
      if (equals != std::string::npos && text.rfind(prefix, 0) == 0 &&
          text.rfind("NVIDIA_REQUIRE_", 0) != 0)  // a container's list of drivers, 2 kB
        block[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return block;
}

Json run_fields(const std::vector<std::string>& command, uint64_t seed, const Json& device,
                const std::map<std::string, std::string>& tags) {
  const Commit commit = current_commit();
  return {{"tool",
           {{"name", "tigon"},
            {"version", build_info().version},
            {"commit", commit.commit.empty() ? Json(nullptr) : Json(commit.commit)},
            {"dirty", commit.dirty}}},
          {"command", command},
          {"seed", seed},
          {"started", utc_now()},
          {"host", host_block()},
          {"device", device},
          {"build", build_block()},
          {"libraries", libraries_block()},
          {"environment", environment_block()},
          {"tags", tags}};
}

}  // namespace tigon
