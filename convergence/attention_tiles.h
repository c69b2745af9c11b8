// SPDX-License-Identifier: Apache-2.0
// Tiles of attention in shared memory: loads, products of two tiles, and rows shared by 16 threads.
//
// 256 threads as 16 by 16; each owns 4 rows and every 16th column of a tile, so a product of two
// tiles loads 8 values from shared memory per 16 multiplications. Products are fp32, without tensor
// cores.
#pragma once
#include "convergence/attention.h"
#include "kernels/device/device.h"

namespace tigon::convergence {

constexpr int kTile = 64;
constexpr int kThreads = 256;
constexpr int kLanes = 16;  // threads that share a row
constexpr int kRows = 4;    // of a thread
// Four tiles and the scores take 87 KB of shared memory with heads of 64, 152 KB with heads of 128.
template <int kHead>
inline constexpr int kBlocksPerSm = kHead <= 64 ? 2 : 1;
constexpr int kScoreRow = kTile + 4;

// Floats of a row in shared memory. With 4 more than the head size, 8 lanes that read 16 bytes of
// 8 rows touch all 32 banks once.
template <int kHead>
inline constexpr int kRow = kHead + 4;
template <int kHead>
inline constexpr int kTileFloats = kTile* kRow<kHead>;

// Columns of a thread in an accumulator of a tile of head-size columns: groups of kWidth
// neighbours.
template <int kHead>
inline constexpr int kColumns = kHead / kLanes;
template <int kHead>
inline constexpr int kWidth = kColumns<kHead> < 4 ? kColumns<kHead> : 4;

template <int kCount>
struct alignas(4 * kCount) Floats {
  float v[kCount];
};
template <int kCount>
TIGON_DEVICE Floats<kCount> load_shared(const float* p) {
  return *reinterpret_cast<const Floats<kCount>*>(p);
}

TIGON_DEVICE void store_shared(float* p, const Floats<4>& f) {
  *reinterpret_cast<Floats<4>*>(p) = f;
}

TIGON_DEVICE int my_row() { return static_cast<int>(threadIdx.x) / kLanes * kRows; }
TIGON_DEVICE int my_lane() { return static_cast<int>(threadIdx.x) % kLanes; }
template <int kHead>
TIGON_DEVICE int my_column(int c) {
  constexpr int w = kWidth<kHead>;
  return c / w * (kLanes * w) + my_lane() * w + c % w;
}

// A value per own row, reduced over the 16 threads that share them.
struct PerRow {
  float v[kRows];
};
struct RowMax {
  TIGON_DEVICE PerRow operator()(PerRow a, const PerRow& b) const {
    for (int i = 0; i < kRows; ++i) a.v[i] = Max{}(a.v[i], b.v[i]);
    return a;
  }
};
struct RowSum {
  TIGON_DEVICE PerRow operator()(PerRow a, const PerRow& b) const {
    for (int i = 0; i < kRows; ++i) a.v[i] += b.v[i];
    return a;
  }
};

using Scores = float[kRows][kTile / kLanes];  // columns my_lane() + 16 j

// A tile of `rows` rows (at most 64; the rest is 0) from global to shared memory, as fp32.
template <int kHead, class T>
TIGON_DEVICE void load_tile(const T* from, int64_t stride, int rows, float* to) {
  constexpr int kWide = kVec<T>;
  for (int i = static_cast<int>(threadIdx.x) * kWide; i < kTile * kHead; i += kThreads * kWide) {
    const int row = i / kHead, column = i % kHead;
    float f[kWide] = {};
    if (row < rows) unpack(load16(from + row * stride + column), f);
    TIGON_UNROLL
    for (int j = 0; j < kWide; j += 4)
      store_shared(to + row * kRow<kHead> + column + j, {f[j], f[j + 1], f[j + 2], f[j + 3]});
  }
}

// s[i][j] = dot product of row my_row() + i of a and row my_lane() + 16 j of b.
template <int kHead>
TIGON_DEVICE void multiply_rows(const float* a, const float* b, Scores& s) {
  constexpr int kStep = 4;
  for (auto& row : s)
    for (float& x : row) x = 0.0f;
  for (int d = 0; d < kHead; d += kStep) {
    Floats<kStep> x[kRows], y[kTile / kLanes];
    TIGON_UNROLL
    for (int i = 0; i < kRows; ++i) x[i] = load_shared<kStep>(a + (my_row() + i) * kRow<kHead> + d);
    TIGON_UNROLL
    for (int j = 0; j < kTile / kLanes; ++j)
      y[j] = load_shared<kStep>(b + (my_lane() + kLanes * j) * kRow<kHead> + d);
    TIGON_UNROLL
    for (int i = 0; i < kRows; ++i) TIGON_UNROLL
    for (int j = 0; j < kTile / kLanes; ++j) TIGON_UNROLL
    for (int k = 0; k < kStep; ++k) s[i][j] += x[i].v[k] * y[j].v[k];
  }
}

// sum[i][c] += dot product of row my_row() + i of p, [64, 64], and column my_column(c) of b.
template <int kHead>
TIGON_DEVICE void multiply_columns(const float* p, const float* b,
                                   float (&sum)[kRows][kColumns<kHead>]) {
  constexpr int kStep = 4, kWide = kWidth<kHead>;
  for (int k = 0; k < kTile; k += kStep) {
    Floats<kStep> x[kRows];
    TIGON_UNROLL
    for (int i = 0; i < kRows; ++i) x[i] = load_shared<kStep>(p + (my_row() + i) * kScoreRow + k);
    TIGON_UNROLL
    for (int step = 0; step < kStep; ++step) TIGON_UNROLL
    for (int c = 0; c < kColumns<kHead>; c += kWide) {
      const auto y = load_shared<kWide>(b + (k + step) * kRow<kHead> + my_column<kHead>(c));
      TIGON_UNROLL
      for (int i = 0; i < kRows; ++i) TIGON_UNROLL
      for (int w = 0; w < kWide; ++w) sum[i][c + w] += x[i].v[step] * y.v[w];
    }
  }
}

// Rows of p belong to the 16 threads that share them: lanes of one warp.
TIGON_DEVICE void store_scores(const Scores& s, float* p) {
  __syncwarp();
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kTile / kLanes; ++j)
      p[(my_row() + i) * kScoreRow + my_lane() + kLanes * j] = s[i][j];
  __syncwarp();
}

template <int kHead, class T>
TIGON_DEVICE void store_tile(const float (&sum)[kRows][kColumns<kHead>], const PerRow& scale,
                             int rows, T* to, int64_t stride) {
  for (int i = 0; i < kRows && my_row() + i < rows; ++i)
    for (int c = 0; c < kColumns<kHead>; ++c)
      store(to + (my_row() + i) * stride + my_column<kHead>(c),
            from_float<T>(sum[i][c] * scale.v[i]));
}

// A score from the dot product of a query and a key: dot / sqrt(head size), and with a cap
// cap tanh(that / cap).
class Score {
 public:
  explicit Score(const AttentionShape& s)
      : scale_(1.0f / sqrtf(static_cast<float>(s.head_size))),
        cap_(s.softcap),
        inverse_(s.softcap > 0.0f ? 1.0f / s.softcap : 0.0f) {}
  TIGON_DEVICE float of(float dot) const {
    const float x = dot * scale_;
    return cap_ > 0.0f ? cap_ * fast_tanh(x * inverse_) : x;
  }
  // The derivative by the dot product, where the score is s.
  TIGON_DEVICE float slope(float s) const {
    const float t = s * inverse_;
    return scale_ * (1.0f - t * t);
  }

 private:
  float scale_, cap_, inverse_;
};

// Offsets of one block's heads; the batch is blockIdx.z.
struct Offsets {
  int64_t q, k, v, out, statistic;
  TIGON_DEVICE Offsets(const AttentionShape& s, int head, int kv_head) {
    const int64_t b = blockIdx.z, row0 = b * s.sequence * s.row();
    q = row0 + int64_t{head} * s.head_size;
    k = row0 + s.q_size() + int64_t{kv_head} * s.head_size;
    v = k + int64_t{s.kv_heads} * s.head_size;
    out = b * s.sequence * s.q_size() + int64_t{head} * s.head_size;
    statistic = (b * s.heads + head) * s.sequence;
  }
};

TIGON_DEVICE int rows_from(const AttentionShape& s, int first) {
  return s.sequence - first < kTile ? s.sequence - first : kTile;
}

}  // namespace tigon::convergence
