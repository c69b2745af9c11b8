// SPDX-License-Identifier: Apache-2.0
// Which cuBLASLt a process multiplies with. It is looked up once, so each test asks in a process of
// its own; none needs a GPU.
#include "kernels/device/cublaslt.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace tigon {
namespace {

namespace fs = std::filesystem;

// As a framework has it: a file that only it knows, and symbols that only it sees.
void* load(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  return library;
}

// The file that the functions are taken from; empty when there is none.
fs::path file_taken() {
  Dl_info info;
  const CublasLt* lt = cublaslt();
  if (lt == nullptr || dladdr(reinterpret_cast<void*>(lt->matmul), &info) == 0) return {};
  return fs::canonical(info.dli_fname);
}

// Says `text` and ends the process.
[[noreturn]] void say(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::_Exit(0);
}

#define EXPECT_SAID(what, matcher) EXPECT_EXIT(say(what), testing::ExitedWithCode(0), matcher)

TEST(CublasLt, is_the_copy_that_the_process_has) {
  const auto taken = [] {
    load(TIGON_STUB);
    return file_taken().string();
  };
  EXPECT_SAID(taken(), fs::canonical(TIGON_STUB).string() + "\n");
}

TEST(CublasLt, is_the_system_s_where_the_process_has_none) {
  const auto taken = [] {
    const fs::path file = file_taken();
    if (!file.empty()) return file == fs::canonical(TIGON_STUB) ? "the stub" : "the system's";
    return load(fs::path(TIGON_STUB).filename().c_str()) ? "missed" : cublaslt_error();
  };
  EXPECT_SAID(taken(), "^the system's\n|^gemm: cuBLASLt of CUDA .* is not found; install");
}

TEST(CublasLt, that_lacks_a_function_is_none) {
  const auto error = [] {
    load(TIGON_STUB_WITHOUT_MATMUL);
    return std::string(cublaslt() == nullptr ? cublaslt_error() : "nothing");
  };
  EXPECT_SAID(error(), "^gemm: cuBLASLt has no cublasLtMatmul\n");
}

}  // namespace
}  // namespace tigon
