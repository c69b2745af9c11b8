// SPDX-License-Identifier: Apache-2.0
// One element per thread and step, in a grid-stride loop; the ranks of an element in order.
#include "harness/ops/sum_of_ranks.h"

#include <algorithm>

#include "kernels/device/device.h"

namespace tigon {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2048;  // enough to fill a device

template <class T>
TIGON_KERNEL(kThreads)
sum_kernel(const float* parts /* [ranks, n] */, int64_t ranks, int64_t n, int64_t columns,
           T* out /* [n / columns, columns] */, int64_t stride) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += threads) {
    float sum = load(parts + i);
    for (int64_t rank = 1; rank < ranks; ++rank) sum += load(parts + rank * n + i);
    store(out + i / columns * stride + i % columns, from_float<T>(sum));
  }
}

}  // namespace

Status sum_of_ranks(const float* parts, int64_t ranks, int64_t rows, int64_t columns, void* out,
                    DType dtype, int64_t stride, Stream stream) {
  const int64_t n = rows * columns;
  const auto blocks = static_cast<unsigned>(std::min(ceil_div(n, int64_t{kThreads}), kMostBlocks));
  const LaunchConfig config = {dim3(blocks), dim3(kThreads), 0, stream};
  const auto sum_as = [&]<class T>(T* typed) {
    return launch(config, sum_kernel<T>, parts, ranks, n, columns, typed, stride);
  };
  if (dtype == DType::kBF16) return sum_as(static_cast<bf16*>(out));
  if (dtype == DType::kF16) return sum_as(static_cast<f16*>(out));
  return sum_as(static_cast<float*>(out));
}

}  // namespace tigon
