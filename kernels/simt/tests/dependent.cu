// SPDX-License-Identifier: Apache-2.0
// Kernels of dependent.h.
#include "kernels/simt/tests/dependent.h"

#include "kernels/device/device.h"

namespace tigon::simt_tests {

namespace {

constexpr int kThreads = kDependentWords / 2;

TIGON_DEVICE unsigned word() { return blockIdx.x * kThreads + threadIdx.x; }
// Through shared memory, which is nobody's but the launch's.
TIGON_DEVICE int through_shared(int value) {
  TIGON_SHARED(int, values, [kThreads]);
  values[threadIdx.x] = value;
  return values[threadIdx.x];
}

TIGON_KERNEL(kThreads) first_kernel(const int* read, int* written) {
  dependency_launch();
  written[word()] = through_shared(read[word()]);
}

TIGON_DEVICE bool waits(Wait wait) {
  switch (wait) {
    case Wait::kAll:
      return true;
    case Wait::kThenSyncwarp:
      return word() % 32 == 0;
    case Wait::kThenSyncthreads:
      return threadIdx.x == 0;
    case Wait::kFirstThread:
    case Wait::kThenClusterSync:
      return word() == 0;
    default:
      return false;
  }
}

TIGON_KERNEL(kThreads) second_kernel(Dependent d, int* read, int* written, int* out) {
  const unsigned i = word();
  if (waits(d.wait)) dependency_wait();
  if (d.wait == Wait::kThenSyncwarp) __syncwarp();
  if (d.wait == Wait::kThenSyncthreads) __syncthreads();
  if (d.wait == Wait::kThenClusterSync) cluster_sync();
  out[i] = through_shared(0);
  switch (d.touch) {
    case Touch::kReadWritten:
      out[i] = written[i];
      break;
    case Touch::kReadRead:
      out[i] = read[i];
      break;
    case Touch::kWriteWritten:
      written[i] = 1;
      break;
    case Touch::kWriteRead:
      read[i] = 1;
      break;
  }
  if (d.wait == Wait::kTooLate) dependency_wait();
}

}  // namespace

Status first_kernel_of_two(const int* read, int* written) {
  return launch({.grid = 2, .block = kThreads}, first_kernel, read, written);
}

Status second_kernel_of_two(const Dependent& d, int* read, int* written, int* out) {
  return launch({.grid = 2, .block = kThreads, .cluster = 2, .dependent = d.dependent},
                second_kernel, d, read, written, out);
}

}  // namespace tigon::simt_tests
