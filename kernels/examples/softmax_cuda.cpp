// SPDX-License-Identifier: Apache-2.0
// softmax of one row of bf16 on a GPU: link tigon::tigon and the CUDA runtime.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <tigon.hpp>
#include <vector>

int main() {
  constexpr int64_t kColumns = 1000;
  const std::vector<tigon::bf16> ones(kColumns, tigon::bf16(1.0f));
  constexpr size_t kBytes = kColumns * sizeof(tigon::bf16);
  void* device = nullptr;
  if (cudaMalloc(&device, kBytes) != cudaSuccess) return std::fprintf(stderr, "no GPU\n"), 1;
  cudaMemcpy(device, ones.data(), kBytes, cudaMemcpyHostToDevice);

  tigon::softmax::Forward<tigon::BF16> args;
  args.x = tigon::view(static_cast<const tigon::bf16*>(device), 1, kColumns);
  args.y = tigon::view(static_cast<tigon::bf16*>(device), 1, kColumns);  // in place
  const tigon::Status status = tigon::run(args, nullptr);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.reason), 1;

  tigon::bf16 first;
  cudaMemcpy(&first, device, sizeof first, cudaMemcpyDeviceToHost);
  std::printf("%.6f\n", static_cast<float>(first));
  cudaFree(device);
}
