// SPDX-License-Identifier: Apache-2.0
// Kernels whose memory traffic is known, for tests of the counters. All have 64 threads per block.
#pragma once
#include "kernels/signature/status.h"

namespace tigon::simt_tests {

// y[i] = x[i] for i < n, 4 bytes per access.
Status copy_words(int blocks, const float* x, float* y, int n);
// The same, 16 bytes per access; n is a multiple of 4.
Status copy_vectors(int blocks, const float* x, float* y, int n);
// y[i] = x[i * stride].
Status gather(int blocks, int stride, const float* x, float* y);
// Thread i adds up x[0 .. i): as many iterations as its index.
Status triangle(const float* x, float* y);
// Thread i < 32 stores 4, 8 or 16 bytes at shared word i * stride, and loads 4 or 8 from there.
Status shared_words(int bytes, int stride, float* y);
// All threads load one shared word.
Status shared_broadcast(float* y);
// `barriers` barriers, and an atomic per thread.
Status barriers_and_atomics(int blocks, int barriers, int* sum);

}  // namespace tigon::simt_tests
