// SPDX-License-Identifier: Apache-2.0
// Facts about the build that CMake knows, compiled in (build_info.cmake).
#pragma once
#include <string>

namespace tigon {

struct BuildInfo {
  std::string version;        // of Tigon
  std::string preset;         // host, cuda, ...; or the name of the build folder
  std::string compiler;       // name and version
  std::string cuda_compiler;  // empty without CUDA
  std::string flags;
  std::string type;                          // Release, ...
  std::string source_dir;                    // where it was built from
  std::string commit;                        // when it was configured; empty outside a git checkout
  std::string eigen, googletest, benchmark;  // versions of packages, as CMake found them
};

BuildInfo build_info();

}  // namespace tigon
