// SPDX-License-Identifier: Apache-2.0
// The streams whose bandwidths are ceilings. One 16-byte piece per thread for those that write, as
// the fastest copy does; the read loops, so that few blocks keep many loads in flight.
#include "harness/measure/stream_kernels.h"

#include <algorithm>

#include "kernels/device/device.h"
#include "kernels/device/device_limits.h"

namespace tigon {
namespace {

constexpr int kThreads = 256;
constexpr int kReadsInFlight = 8;        // per thread
constexpr int64_t kMostReadBlocks = 32;  // per multiprocessor

TIGON_DEVICE int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

TIGON_KERNEL(kThreads)
copy_kernel(float* to /* [n, 4] */, const float* from /* [n, 4] */, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) store16(to + 4 * i, load16_stream(from + 4 * i));
}

TIGON_KERNEL(kThreads)
triad_kernel(float* to /* [n, 4] */, const float* a /* [n, 4] */, const float* b /* [n, 4] */,
             int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  Vec<float> x = load16_stream(a + 4 * i);
  const Vec<float> y = load16_stream(b + 4 * i);
  TIGON_UNROLL
  for (int j = 0; j < 4; ++j) x[j] += y[j];
  store16(to + 4 * i, x);
}

TIGON_KERNEL(kThreads)
read_kernel(float* sink /* [4] */, const float* from /* [n, 4] */, int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  float sum = 0.0f;
  for (int64_t i = thread_index(); i < n; i += kReadsInFlight * stride) {
    Vec<float> x[kReadsInFlight];
    TIGON_UNROLL
    for (int k = 0; k < kReadsInFlight; ++k)
      if (i + k * stride < n) x[k] = load16_stream(from + 4 * (i + k * stride));
    TIGON_UNROLL
    for (int k = 0; k < kReadsInFlight; ++k)
      if (i + k * stride < n) sum += x[k][0] + x[k][1] + x[k][2] + x[k][3];
  }
  if (sum == 1.0e30f) store(sink, sum);  // never, but the compiler cannot know
}

LaunchConfig one_piece_per_thread(int64_t n, Stream stream) {
  return {dim3(static_cast<unsigned>(ceil_div(n, int64_t{kThreads}))), dim3(kThreads), 0, stream};
}

}  // namespace

Status stream_copy(void* to, const void* from, int64_t n, Stream stream) {
  return launch(one_piece_per_thread(n, stream), copy_kernel, static_cast<float*>(to),
                static_cast<const float*>(from), n);
}

Status stream_read(void* sink, const void* from, int64_t n, Stream stream) {
  const int64_t blocks = std::min(ceil_div(n, int64_t{kThreads * kReadsInFlight}),
                                  kMostReadBlocks * device_limits().multiprocessors);
  return launch({dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, stream}, read_kernel,
                static_cast<float*>(sink), static_cast<const float*>(from), n);
}

Status stream_triad(void* to, const void* a, const void* b, int64_t n, Stream stream) {
  return launch(one_piece_per_thread(n, stream), triad_kernel, static_cast<float*>(to),
                static_cast<const float*>(a), static_cast<const float*>(b), n);
}

}  // namespace tigon
