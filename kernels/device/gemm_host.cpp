// SPDX-License-Identifier: Apache-2.0
// GEMM on a CPU by Eigen: tiles of C are dealt to threads; A and B are converted to fp32 block by
// block, so that 16-bit types run at the speed of fp32 and sums stay in fp32.
#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kernels/device/gemm.h"
#include "kernels/simt/device_memory.h"
#include "kernels/simt/simt.h"

namespace tigon {
namespace {

// Edge of a tile of C and of a block of A and B: each conversion is shared by 384 multiplications,
// and the three fp32 buffers of a thread (1.7 MiB) stay near its cache.
constexpr int64_t kTile = 384;
constexpr int64_t kLineFloats = 16;        // buffers start where cache lines do
constexpr double kMinFlopPerThread = 4e6;  // less does not pay for a thread

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Block = Eigen::Map<RowMajor>;

int64_t tiles(int64_t n) { return (n + kTile - 1) / kTile; }

// Where the buffers of a thread lie: a block of A and of B and a tile of C, of which a small
// problem needs a part only.
struct Buffers {
  int64_t b, sum, end;  // in floats behind A's
};

Buffers buffers_of(const Gemm& p) {
  const auto edge = [](int64_t n) { return std::clamp<int64_t>(n, 1, kTile); };
  const auto lines = [](int64_t n) { return (n + kLineFloats - 1) / kLineFloats * kLineFloats; };
  const int64_t m = edge(p.m), n = edge(p.n), k = edge(p.k);
  const int64_t b = lines(m * k), sum = b + lines(n * k);
  return {b, sum, sum + lines(m * n)};
}

unsigned threads_for(const Gemm& p) {
  const double flop = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                      static_cast<double>(std::max<int64_t>(p.k, 1));
  const auto worthwhile = static_cast<int64_t>(std::min(flop / kMinFlopPerThread, 1024.0));
  static const int64_t cores = std::max(1u, std::thread::hardware_concurrency());  // reads a file
  return static_cast<unsigned>(
      std::clamp<int64_t>(std::min({worthwhile, cores, tiles(p.m) * tiles(p.n)}), 1, 1024));
}

// Rows and columns of a block of a matrix as stored.
struct Range {
  int64_t row, column, rows, columns;
};

template <class T>
Block read(const T* source, int64_t ld, const Range& r, float* buffer) {
  for (int64_t i = 0; i < r.rows; ++i) {
    const T* from = source + (r.row + i) * ld + r.column;
    float* to = buffer + i * r.columns;
    for (int64_t j = 0; j < r.columns; ++j) to[j] = static_cast<float>(from[j]);
  }
  return {buffer, r.rows, r.columns};
}

// C's tile = alpha sum + beta C's tile + bias.
template <class Out>
void write(const Gemm& p, const Range& r, Block& sum) {
  const Out* const bias = static_cast<const Out*>(p.bias);
  for (int64_t i = 0; i < r.rows; ++i) {
    Out* to = static_cast<Out*>(p.c) + (r.row + i) * p.ldc + r.column;
    float* const from = sum.data() + i * r.columns;
    for (int64_t j = 0; j < r.columns; ++j) from[j] *= p.alpha;
    if (p.beta != 0.0f)
      for (int64_t j = 0; j < r.columns; ++j) from[j] += p.beta * static_cast<float>(to[j]);
    if (bias != nullptr)
      for (int64_t j = 0; j < r.columns; ++j) from[j] += static_cast<float>(bias[r.column + j]);
    for (int64_t j = 0; j < r.columns; ++j) to[j] = Out(from[j]);
  }
}

template <class In, class Out>
void compute_tile(const Gemm& p, const Range& r, float* buffer) {
  const Buffers at = buffers_of(p);
  float* const a_buffer = buffer;
  float* const b_buffer = buffer + at.b;
  Block sum(buffer + at.sum, r.rows, r.columns);
  sum.setZero();
  for (int64_t k = 0; k < p.k; k += kTile) {
    const int64_t depth = std::min(kTile, p.k - k);
    const Range a_range =
        p.transpose_a ? Range{k, r.row, depth, r.rows} : Range{r.row, k, r.rows, depth};
    const Range b_range =
        p.transpose_b ? Range{r.column, k, r.columns, depth} : Range{k, r.column, depth, r.columns};
    const Block a = read(static_cast<const In*>(p.a), p.lda, a_range, a_buffer);
    const Block b = read(static_cast<const In*>(p.b), p.ldb, b_range, b_buffer);
    if (p.transpose_a && p.transpose_b)
      sum.noalias() += a.transpose() * b.transpose();
    else if (p.transpose_a)
      sum.noalias() += a.transpose() * b;
    else if (p.transpose_b)
      sum.noalias() += a * b.transpose();
    else
      sum.noalias() += a * b;
  }
  write<Out>(p, r, sum);
}

template <class In, class Out>
void run(const Gemm& p, float* buffers) {
  const int64_t count = tiles(p.m) * tiles(p.n);
  std::atomic<int64_t> next = 0;
  const auto work = [&](unsigned thread) {
    float* const buffer = buffers + thread * buffers_of(p).end;
    for (int64_t t = next++; t < count; t = next++) {
      const int64_t row = t / tiles(p.n) * kTile, column = t % tiles(p.n) * kTile;
      compute_tile<In, Out>(
          p, {row, column, std::min(kTile, p.m - row), std::min(kTile, p.n - column)}, buffer);
    }
  };
  std::vector<std::jthread> others;
  for (unsigned thread = 1; thread < threads_for(p); ++thread) others.emplace_back(work, thread);
  work(0);
}

// Tells the checker of kernels what it cannot see: C is written now.
void mark_written(const Gemm& p) {
  const size_t row = static_cast<size_t>(p.n) * size_of(p.out_type);
  const size_t stride = static_cast<size_t>(p.ldc) * size_of(p.out_type);
  for (int64_t i = 0; i < p.m; ++i)
    simt::memory_mark(static_cast<char*>(p.c) + static_cast<size_t>(i) * stride, row, true);
}

}  // namespace

size_t gemm_workspace(const Gemm& p) {
  return threads_for(p) * static_cast<size_t>(buffers_of(p).end) * sizeof(float);
}

Status gemm(const Gemm& p, Scratch scratch, Stream) {
  if (const Status s = gemm_check(p); !s.ok()) return s;
  if (p.m == 0 || p.n == 0) return {};
  if (p.k == 0) return unsupported("gemm: k must be at least 1");
  if (p.a == nullptr || p.b == nullptr || p.c == nullptr)
    return invalid("gemm: A, B and C must not be null");
  if (scratch.data == nullptr || scratch.bytes < gemm_workspace(p))
    return invalid("gemm: scratch is smaller than gemm_workspace()");
  if (!simt::runs()) return {};
  auto* const buffers = static_cast<float*>(scratch.data);
  if (p.in_type == DType::kF32)
    run<float, float>(p, buffers);
  else if (p.in_type == DType::kBF16)
    p.out_type == DType::kF32 ? run<bf16, float>(p, buffers) : run<bf16, bf16>(p, buffers);
  else
    p.out_type == DType::kF32 ? run<f16, float>(p, buffers) : run<f16, f16>(p, buffers);
  mark_written(p);
  return {};
}

Status gemm_tune(const Gemm& problem) { return gemm_check(problem); }

}  // namespace tigon
