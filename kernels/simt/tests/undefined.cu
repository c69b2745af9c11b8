// SPDX-License-Identifier: Apache-2.0
// Kernels of undefined.h.
#include "kernels/simt/tests/undefined.h"

#include "kernels/device/async.h"
#include "kernels/device/device.h"

namespace tigon::simt_tests {

namespace {

TIGON_KERNEL(32)
fill_kernel(int* x, int count) {
  const int first = static_cast<int>(threadIdx.x) / kOwnValues * kOwnValues;
  int values[kOwnValues] = {};
  for (int i = 0; i < count; ++i) values[i] = first + i;
  x[threadIdx.x] = values[threadIdx.x % kOwnValues];
}

// Whose array is its last member.
struct Own {
  int first;
  int values[kOwnValues] = {};
  TIGON_DEVICE void set(int i) { values[i] = first + i; }
};

TIGON_KERNEL(32)
fill_members_kernel(int* x, int count) {
  Own own{static_cast<int>(threadIdx.x) / kOwnValues * kOwnValues};
  for (int i = 0; i < count; ++i) own.set(i);
  x[threadIdx.x] = own.values[threadIdx.x % kOwnValues];
}

TIGON_KERNEL(32)
shift_kernel(int* x, int by) { x[threadIdx.x] = 1 << by; }

TIGON_KERNEL(32)
prefetch_kernel(const int* x, int first) { prefetch_bulk(x + first, 16); }

}  // namespace

Status fill(int* x, int count) { return launch({.grid = 1, .block = 32}, fill_kernel, x, count); }
Status fill_members(int* x, int count) {
  return launch({.grid = 1, .block = 32}, fill_members_kernel, x, count);
}
Status prefetch(const int* x, int first) {
  return launch({.grid = 1, .block = 32}, prefetch_kernel, x, first);
}
Status shift(int* x, int by) { return launch({.grid = 1, .block = 32}, shift_kernel, x, by); }

}  // namespace tigon::simt_tests
