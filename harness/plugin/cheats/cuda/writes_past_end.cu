// Writes one element too many.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  const cheat::Forward f(call);
  const cudaStream_t stream = cheat::stream_of(call);
  cheat::start(f, stream);
  if (f.rows > 0)
    cudaMemsetAsync(f.y + (f.rows - 1) * f.y_stride + f.columns, 0, sizeof(float), stream);
  return cheat::status();
}
