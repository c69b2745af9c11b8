// SPDX-License-Identifier: Apache-2.0
// Several GPUs in one process.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <thread>

#include "kernels/call/tests/random_call.h"

namespace tigon::call {
namespace {

using AllOutputs = std::vector<std::vector<std::byte>>;  // of each op

AllOutputs outputs_on(int device) {
  EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
  AllOutputs all;
  for (int32_t i = 0; const tigon_op* op = tigon_op_at(i); ++i) {
    tigon_status status;
    all.push_back(RandomCall(op).run(nullptr, &status));
    EXPECT_EQ(status.code, TIGON_OK) << op->name << " on GPU " << device << ": " << status.message;
  }
  return all;
}

TEST(Devices, give_the_same_one_after_the_other_and_at_once) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2)
    GTEST_SKIP() << "this machine has no two GPUs";
  const AllOutputs first = outputs_on(0);
  EXPECT_FALSE(first.empty());
  for (int device = devices - 1; device >= 0; --device)
    EXPECT_EQ(outputs_on(device), first) << device;
  std::vector<AllOutputs> together(static_cast<size_t>(devices));
  std::vector<std::thread> threads;
  for (int device = 0; device < devices; ++device)
    threads.emplace_back(
        [&, device] { together[static_cast<size_t>(device)] = outputs_on(device); });
  for (std::thread& t : threads) t.join();
  for (const AllOutputs& one : together) EXPECT_EQ(one, first);
}

}  // namespace
}  // namespace tigon::call
