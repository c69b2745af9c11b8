// SPDX-License-Identifier: Apache-2.0
// What of the kernels no host executor runs.
#include "harness/cli/text/gpu_only.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tigon::cli {

const std::vector<GpuOnly>& gpu_only() {
  static const std::vector<GpuOnly> all = {
      {"matrix products of cuBLASLt",
       {"kernels/device/gemm_cuda.cpp", "kernels/device/cublaslt.cpp"},
       "products in double, rounded once"},
      {"collectives of NCCL",
       {"kernels/collective/nccl_cuda.cpp"},
       "threads as ranks, whose sums go through memory"},
      {"launch attributes: clusters, programmatic launch, shared memory on request",
       {"kernels/device/launch_cuda.h", "kernels/device/launch.h"},
       "the same grid; what a dependent launch may read early is not reordered"},
      {"asynchronous and bulk copies, mbarriers and their fences",
       {"kernels/device/async.h"},
       "copies when they are waited for; a race is reported"},
      {"clusters' barriers and shared memory of other blocks",
       {"kernels/device/cluster.h"},
       "blocks that run together"},
      {"shuffles, fast functions, 16-byte accesses and packed conversions",
       {"kernels/device/vec.h", "kernels/device/vec_cuda.h", "kernels/device/math.h",
        "kernels/device/math_cuda.h", "kernels/device/reduce.h", "kernels/device/pieces.h",
        "kernels/signature/dtype.h"},
       "the same operations in C++"},
      {"code of GPUs before sm_90: __CUDA_ARCH__ below 900",
       {"kernels/device/async.h", "kernels/device/cluster.h", "kernels/device/launch_cuda.h"},
       "--as sm_80 takes their launch paths on any device, not their machine code"},
      {"what the device is, memory, streams and graphs",
       {"kernels/device/device_limits.h", "kernels/device/platform.h",
        "kernels/device/runtime_cuda.cpp", "kernels/device/nvtx_cuda.cpp"},
       "a model of an H200"},
  };
  return all;
}

void print_gpu_only() {
  fmt::print("only a GPU runs:\n");
  for (const GpuOnly& part : gpu_only())
    fmt::print("  {} ({}); on the host {}\n", part.what, fmt::join(part.files, ", "),
               part.on_the_host);
}

}  // namespace tigon::cli
