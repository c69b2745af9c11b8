// SPDX-License-Identifier: Apache-2.0
// Finds cuBLASLt of the CUDA version that this was compiled with.
#include "kernels/device/cublaslt.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>

namespace tigon {
namespace {

constexpr int kMajor = CUDART_VERSION / 1000;

struct Found {
  CublasLt functions{};
  std::string error;
};

void* open_library(std::string* error) {
  const std::string name = "libcublasLt.so." + std::to_string(kMajor);
  // The first finds a copy that is loaded already, whoever loaded it and however private.
  if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) return library;
  if (void* library = dlopen(name.c_str(), RTLD_NOW)) return library;
  *error = dlerror();
  // Where the toolkit's installer puts it without telling the loader.
  return dlopen(("/usr/local/cuda/lib64/" + name).c_str(), RTLD_NOW);
}

Found find() {
  Found found;
  std::string error;
  void* library = open_library(&error);
  if (library == nullptr) {
    found.error = "gemm: cuBLASLt of CUDA " + std::to_string(kMajor) +
                  " is not found; install it, or add its folder to LD_LIBRARY_PATH (" + error + ")";
    return found;
  }
  const auto load = [&]<class F>(F* function, const char* name) {
    *function = reinterpret_cast<F>(dlsym(library, name));
    if (*function == nullptr) found.error = std::string("gemm: cuBLASLt has no ") + name;
  };
  CublasLt& lt = found.functions;
  load(&lt.create, "cublasLtCreate");
  load(&lt.matmul, "cublasLtMatmul");
  load(&lt.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  load(&lt.check, "cublasLtMatmulAlgoCheck");
  load(&lt.init_operation, "cublasLtMatmulDescInit_internal");
  load(&lt.set_operation, "cublasLtMatmulDescSetAttribute");
  load(&lt.init_layout, "cublasLtMatrixLayoutInit_internal");
  load(&lt.init_preference, "cublasLtMatmulPreferenceInit_internal");
  load(&lt.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  return found;
}

const Found& found() {
  static const auto* f = new Found(find());
  return *f;
}

}  // namespace

const CublasLt* cublaslt() { return found().error.empty() ? &found().functions : nullptr; }

const char* cublaslt_error() { return found().error.c_str(); }

}  // namespace tigon
