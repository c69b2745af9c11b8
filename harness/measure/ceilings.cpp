// SPDX-License-Identifier: Apache-2.0
// Measures the ceilings of this GPU.
#include "harness/measure/ceilings.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "harness/measure/device_data.h"
#include "harness/measure/require.h"
#include "harness/measure/statistics.h"
#include "harness/measure/stream_kernels.h"
#include "kernels/device/gemm.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

constexpr int64_t kStreamBytes = int64_t{1} << 30;  // 20 times the L2 of an H200: none of it stays
constexpr int64_t kGemmSize = 8192;                 // large enough to fill every SM evenly
constexpr int kWarmUp = 3;

// Median time of one call; clocks settle within the first calls.
double median_seconds(const std::function<Status()>& call, int samples) {
  for (int i = 0; i < kWarmUp; ++i) require(call());
  GpuTimer timer;
  std::vector<double> seconds;
  for (int i = 0; i < samples; ++i) {
    timer.start(nullptr);
    require(call());
    timer.stop(nullptr);
    seconds.push_back(timer.seconds());
  }
  return summarize(seconds).median;
}

void measure_streams(Ceilings* ceilings) {
  constexpr int64_t kPieces = kStreamBytes / 16;
  constexpr int kSamples = 20;
  const DeviceBuffer a(kStreamBytes), b(kStreamBytes), c(kStreamBytes);
  for (const DeviceBuffer* buffer : {&a, &b, &c})  // random, so that nothing can be compressed
    require(fill_normal(buffer->data(), DType::kF32, kStreamBytes / 4, 7, 0, 1, nullptr));
  const auto bandwidth = [](int arrays, double seconds) {
    return static_cast<double>(arrays * kStreamBytes) / seconds;
  };
  (*ceilings)["copy"] = bandwidth(
      2,
      median_seconds([&] { return stream_copy(b.data(), a.data(), kPieces, nullptr); }, kSamples));
  (*ceilings)["read"] = bandwidth(
      1,
      median_seconds([&] { return stream_read(b.data(), a.data(), kPieces, nullptr); }, kSamples));
  (*ceilings)["triad"] = bandwidth(
      3,
      median_seconds([&] { return stream_triad(c.data(), a.data(), b.data(), kPieces, nullptr); },
                     kSamples));
}

// 2 n^3 flop of an n x n x n product with normal entries; a rate with zeros would be too high,
// because they need less power.
void measure_gemm(DType dtype, int samples, Ceilings* ceilings) {
  const auto bytes = static_cast<size_t>(kGemmSize * kGemmSize) * size_of(dtype);
  const DeviceBuffer a(bytes), b(bytes), c(bytes);
  for (const DeviceBuffer* buffer : {&a, &b})
    require(fill_normal(buffer->data(), dtype, kGemmSize * kGemmSize, 11, 0, 1, nullptr));
  Gemm problem{.m = kGemmSize, .n = kGemmSize, .k = kGemmSize};
  problem.in_type = problem.out_type = dtype;
  problem.a = a.data();
  problem.b = b.data();
  problem.c = c.data();
  problem.lda = problem.ldb = problem.ldc = kGemmSize;
  problem.transpose_b = true;
  require(gemm_tune(problem));
  const DeviceBuffer scratch(gemm_workspace(problem));
  const double seconds = median_seconds(
      [&] {
        return gemm(problem, {scratch.data(), scratch.bytes()}, nullptr);
      },
      samples);
  const auto n = static_cast<double>(kGemmSize);
  (*ceilings)[std::string("gemm_") + name_of(dtype)] = 2 * n * n * n / seconds;
}

}  // namespace

Ceilings measure_ceilings() {
  Ceilings ceilings;
  measure_streams(&ceilings);
  measure_gemm(DType::kBF16, 20, &ceilings);
  measure_gemm(DType::kF16, 20, &ceilings);
  measure_gemm(DType::kF32, 5, &ceilings);  // the slowest: fewest
  return ceilings;
}

Ceilings measure_ceilings_of(DType dtype) {
  Ceilings ceilings;
  measure_streams(&ceilings);
  measure_gemm(dtype, dtype == DType::kF32 ? 3 : 10, &ceilings);
  return ceilings;
}

}  // namespace tigon
