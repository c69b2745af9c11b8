// SPDX-License-Identifier: Apache-2.0
// Remembers the answer by the address of the input and its shape.
#include <map>
#include <tuple>

#include "harness/plugin/cheats/cuda/cheat_cuda.h"

namespace {

struct Kept {
  float *y = nullptr, *rstd = nullptr;  // packed
};

size_t bytes(int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); }

}  // namespace

tigon_status cheat_run(const tigon_call* call, cudaStream_t stream) {
  static std::map<std::tuple<const void*, int64_t, int64_t>, Kept> answers;
  const cheat::Forward f(call);
  if (f.rows == 0) return cheat::kOk;
  Kept& kept = answers[{f.x, f.rows, f.columns}];
  const bool known = kept.y != nullptr;
  if (!known) {
    cheat::start(f, stream);
    cudaMalloc(&kept.y, bytes(f.rows * f.columns));
    cudaMalloc(&kept.rstd, bytes(f.rows));
  }
  cudaMemcpy2DAsync(known ? f.y : kept.y, bytes(known ? f.y_stride : f.columns),
                    known ? kept.y : f.y, bytes(known ? f.columns : f.y_stride), bytes(f.columns),
                    static_cast<size_t>(f.rows), cudaMemcpyDeviceToDevice, stream);
  cudaMemcpyAsync(known ? f.rstd : kept.rstd, known ? kept.rstd : f.rstd, bytes(f.rows),
                  cudaMemcpyDeviceToDevice, stream);
  return cheat::status();
}
