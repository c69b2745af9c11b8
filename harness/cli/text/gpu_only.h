// SPDX-License-Identifier: Apache-2.0
// What of the kernels no host executor runs: a check on a GPU has to meet it.
#pragma once
#include <string>
#include <vector>

namespace tigon::cli {

struct GpuOnly {
  std::string what;
  std::vector<std::string> files;  // where it is written
  std::string on_the_host;         // what runs there in its place
};

const std::vector<GpuOnly>& gpu_only();
void print_gpu_only();

}  // namespace tigon::cli
