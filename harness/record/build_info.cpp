// SPDX-License-Identifier: Apache-2.0
// Facts about the build that CMake knows.
#include "harness/record/build_info.h"

namespace tigon {

BuildInfo build_info() {
  return {.version = TIGON_VERSION,
          .preset = TIGON_PRESET,
          .compiler = TIGON_COMPILER,
          .cuda_compiler = TIGON_CUDA_COMPILER,
          .flags = TIGON_FLAGS,
          .type = TIGON_BUILD_TYPE,
          .source_dir = TIGON_SOURCE_DIR,
          .commit = TIGON_COMMIT,
          .eigen = TIGON_EIGEN_VERSION,
          .googletest = TIGON_GTEST_VERSION,
          .benchmark = TIGON_BENCHMARK_VERSION};
}

}  // namespace tigon
