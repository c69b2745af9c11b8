// SPDX-License-Identifier: Apache-2.0
// Kernels that do what C++ leaves undefined when they are asked to.
#pragma once
#include "kernels/signature/status.h"

namespace tigon::simt_tests {

inline constexpr int kOwnValues = 4;

// x[i] = i for the first 32, by way of an array of kOwnValues of which `count` are written.
Status fill(int* x, int count);
// The same with an array that is the last member of a class.
Status fill_members(int* x, int count);
// x[i] = 1 << by for the first 32.
Status shift(int* x, int by);
// Every thread prefetches 16 bytes from x[first] on.
Status prefetch(const int* x, int first);

}  // namespace tigon::simt_tests
