// SPDX-License-Identifier: Apache-2.0
// Every source of the kernels that is written for a GPU alone is in the list that a check prints.
#include "harness/cli/text/gpu_only.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace tigon::cli {
namespace {

namespace fs = std::filesystem;

bool is_for_a_gpu(const fs::path& file) {
  if (file.filename().string().find("_cuda.") != std::string::npos) return true;
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return text.find("#if TIGON_GPU") != std::string::npos ||
         text.find("__CUDA_ARCH__") != std::string::npos;
}

TEST(GpuOnly, lists_every_source_that_the_host_does_not_run) {
  std::set<std::string> listed, found;
  for (const GpuOnly& part : gpu_only()) listed.insert(part.files.begin(), part.files.end());
  const fs::path root = TIGON_SOURCES;
  for (const auto& entry : fs::recursive_directory_iterator(root / "kernels")) {
    const std::string name = fs::relative(entry.path(), root).string();
    const bool is_kernel = name.find("/tests/") == std::string::npos &&
                           name.find("/examples/") == std::string::npos &&
                           name.find("/python/") == std::string::npos;
    if (entry.is_regular_file() && is_kernel && is_for_a_gpu(entry.path())) found.insert(name);
  }
  for (const std::string& name : found) EXPECT_TRUE(listed.count(name)) << name;
  for (const std::string& name : listed) EXPECT_TRUE(fs::exists(root / name)) << name;
}

}  // namespace
}  // namespace tigon::cli
