// SPDX-License-Identifier: Apache-2.0
// Kernels that exercise the device layer, for tests on the host executor and on a GPU.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/signature/dtype.h"
#include "kernels/signature/status.h"

namespace tigon::device_tests {

// One warp operation per column of out[n][kWarpOps]; n need not be a multiple of the block size.
inline constexpr int kWarpOps = 16;
Status warp_ops(const int* in, int* out, int n);

// out[i] = in[last - i] within each block of 96 threads, through dynamic shared memory of
// `shared_bytes` (at least 96 ints, from whose end the kernel uses it).
Status reverse_blocks(const int* in, int* out, int blocks, size_t shared_bytes);

// Several block reductions in a row, with 1, 2, 3, 8 and 32 warps: sums[threads] and
// maxima[threads] as every thread got them, of x[threads * k] for the k-th reduction, added up over
// reductions; sums contain the number of threads, too.
Status block_reductions(int threads, const float* x, int reductions, float* sums, float* maxima);

// (maximum, sum of exponentials) over the block, an operation on a struct.
Status online_softmax(const float* x, int n, float* maximum, float* sum);

// out[block] = sum over the cluster's blocks of (block index + 1), read from their shared memory.
Status cluster_sums(int blocks, unsigned cluster, int* out);
// The same by an exchange: every thread of block b adds b to its cluster's sum. out [blocks].
Status exchanged_sums(int blocks, unsigned cluster, int* out);

// Adds, minima, maxima, exchanges and compare-and-swaps by all threads on out[8].
Status atomics(int blocks, unsigned* out, float* sum);

// out[block.z][block.y][block.x][thread.z][thread.y][thread.x] = linear index as the thread sees
// it.
Status indices(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
               unsigned* out);

// Row sums through cp.async (16 bytes, two groups in flight) and through bulk copies.
Status async_row_sums(const float* x, int rows, int tiles, float* out);
Status bulk_row_sums(const float* x, int rows, int tiles, float* out);
inline constexpr int kTile = 1024;  // floats per tile

// y = T(float(x)) by vectors and by elements, plain and streaming.
template <class T>
Status convert(const float* x, T* rounded, float* back, int n);

// fast_exp, fast_exp2, fast_log, fast_log2, fast_rsqrt, fast_tanh, sigmoid of x[n], and
// fast_div(1, x): y[function][n].
inline constexpr int kMathFunctions = 8;
Status math_functions(const float* x, float* y, int n);

// out[i] = in[i] by scalar loads and stores of T, plain for even i, streaming for odd i.
template <class T>
Status copy_elements(const T* in, T* out, int n);

}  // namespace tigon::device_tests
