// Attention kernels: tiles of 64 rows by 64 rows in shared memory, scores never in global memory.
//
// forward:  s = q k^T c, running maximum m and sum l per row, out = sum p v / l   (c = 1/sqrt(D))
// backward: p = exp(s - lse), dp = dout v^T, ds = p (dp - delta) c, dq = ds k, dk = ds^T q, dv =
// p^T dout
//
// One kernel makes dq (a block per query tile), another dk and dv (a block per key tile, over the
// query heads of its group in order), so nothing is added atomically; s and dp are computed in
// both, 7 products instead of 5. 256 threads as 16 by 16; each owns 4 rows and every 16th column of
// a tile, so a product of two tiles loads 8 values from shared memory per 16 multiplications.
// Products are fp32, without tensor cores.
#include "convergence/attention.h"
#include "kernels/device/device.h"

namespace tigon::convergence {
namespace {

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

template <class T, int kHead>
TIGON_KERNEL(kThreads, kBlocksPerSm<kHead>)
forward_kernel(AttentionShape shape, const T* qkv, T* out, float* lse, float scale) {
  TIGON_DYNAMIC_SHARED(float, q);
  float* const k = q + kTileFloats<kHead>;
  float* const v = k + kTileFloats<kHead>;
  float* const p = v + kTileFloats<kHead>;
  const int head = static_cast<int>(blockIdx.y);
  const Offsets at(shape, head, head / (shape.heads / shape.kv_heads));
  const int last_tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);  // the longest rows first
  const int first_row = last_tile * kTile;
  load_tile<kHead>(qkv + at.q + first_row * shape.row(), shape.row(), rows_from(shape, first_row),
                   q);
  float sum[kRows][kColumns<kHead>] = {};
  PerRow most, total;
  for (int i = 0; i < kRows; ++i) most.v[i] = -INFINITY, total.v[i] = 0.0f;
  for (int tile = 0; tile <= last_tile; ++tile) {
    const int first_key = tile * kTile, keys = rows_from(shape, first_key);
    __syncthreads();
    load_tile<kHead>(qkv + at.k + first_key * shape.row(), shape.row(), keys, k);
    load_tile<kHead>(qkv + at.v + first_key * shape.row(), shape.row(), keys, v);
    __syncthreads();
    Scores s;
    multiply_rows<kHead>(q, k, s);
    PerRow largest = most;
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kTile / kLanes; ++j) {
        const int key = my_lane() + kLanes * j;
        const bool seen = key < keys && first_key + key <= first_row + my_row() + i;
        s[i][j] = seen ? s[i][j] * scale : -INFINITY;
        largest.v[i] = Max{}(largest.v[i], s[i][j]);
      }
    largest = warp_reduce<kLanes>(largest, RowMax{});
    PerRow tile_total = {};
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kTile / kLanes; ++j)
        tile_total.v[i] += s[i][j] = fast_exp(s[i][j] - largest.v[i]);
    tile_total = warp_reduce<kLanes>(tile_total, RowSum{});
    for (int i = 0; i < kRows; ++i) {
      const float shrink = fast_exp(most.v[i] - largest.v[i]);
      total.v[i] = total.v[i] * shrink + tile_total.v[i];
      for (int c = 0; c < kColumns<kHead>; ++c) sum[i][c] *= shrink;
    }
    most = largest;
    store_scores(s, p);
    multiply_columns<kHead>(p, v, sum);
  }
  PerRow inverse;
  for (int i = 0; i < kRows; ++i) inverse.v[i] = 1.0f / total.v[i];
  const int rows = rows_from(shape, first_row);
  store_tile<kHead>(sum, inverse, rows, out + at.out + first_row * shape.q_size(), shape.q_size());
  for (int i = 0; i < kRows && my_row() + i < rows; ++i)
    if (my_lane() == 0)
      store(lse + at.statistic + first_row + my_row() + i, most.v[i] + fast_log(total.v[i]));
}

// A warp per token and head.
template <class T>
TIGON_KERNEL(kThreads)
delta_kernel(AttentionShape shape, const T* out, const T* dout, float* delta) {
  const int64_t item = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t token = item / shape.heads, head = item % shape.heads;
  float sum = 0.0f;
  if (token < shape.tokens()) {
    const int64_t at = token * shape.q_size() + head * shape.head_size;
    for (int d = lane; d < shape.head_size; d += 32)
      sum += to_float(load(out + at + d)) * to_float(load(dout + at + d));
  }
  sum = warp_sum(sum);
  const int64_t b = token / shape.sequence, place = token % shape.sequence;
  if (token < shape.tokens() && lane == 0)
    store(delta + (b * shape.heads + head) * shape.sequence + place, sum);
}

template <class T>
struct BackwardPointers {
  const T *qkv, *dout;
  const float *lse, *delta;
  T* dqkv;
};

template <class T, int kHead>
TIGON_KERNEL(kThreads, kBlocksPerSm<kHead>)
query_gradient_kernel(AttentionShape shape, BackwardPointers<T> a, float scale) {
  TIGON_DYNAMIC_SHARED(float, q);
  float* const dout = q + kTileFloats<kHead>;
  float* const k = dout + kTileFloats<kHead>;
  float* const v = k + kTileFloats<kHead>;
  float* const p = v + kTileFloats<kHead>;
  const int head = static_cast<int>(blockIdx.y);
  const Offsets at(shape, head, head / (shape.heads / shape.kv_heads));
  const int last_tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int first_row = last_tile * kTile, rows = rows_from(shape, first_row);
  load_tile<kHead>(a.qkv + at.q + first_row * shape.row(), shape.row(), rows, q);
  load_tile<kHead>(a.dout + at.out + first_row * shape.q_size(), shape.q_size(), rows, dout);
  PerRow lse = {}, delta = {};
  for (int i = 0; i < kRows && my_row() + i < rows; ++i) {
    lse.v[i] = load(a.lse + at.statistic + first_row + my_row() + i);
    delta.v[i] = load(a.delta + at.statistic + first_row + my_row() + i);
  }
  float sum[kRows][kColumns<kHead>] = {};
  for (int tile = 0; tile <= last_tile; ++tile) {
    const int first_key = tile * kTile, keys = rows_from(shape, first_key);
    __syncthreads();
    load_tile<kHead>(a.qkv + at.k + first_key * shape.row(), shape.row(), keys, k);
    load_tile<kHead>(a.qkv + at.v + first_key * shape.row(), shape.row(), keys, v);
    __syncthreads();
    Scores s, dp;
    multiply_rows<kHead>(q, k, s);
    multiply_rows<kHead>(dout, v, dp);
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kTile / kLanes; ++j) {
        const int key = my_lane() + kLanes * j;
        const bool seen = key < keys && first_key + key <= first_row + my_row() + i;
        const float probability = fast_exp(s[i][j] * scale - lse.v[i]);
        s[i][j] = seen ? probability * (dp[i][j] - delta.v[i]) * scale : 0.0f;
      }
    store_scores(s, p);
    multiply_columns<kHead>(p, k, sum);
  }
  const PerRow one = {{1.0f, 1.0f, 1.0f, 1.0f}};
  store_tile<kHead>(sum, one, rows, a.dqkv + at.q + first_row * shape.row(), shape.row());
}

// Rows are keys here and columns queries.
template <class T, int kHead>
TIGON_KERNEL(kThreads, kBlocksPerSm<kHead>)
key_gradient_kernel(AttentionShape shape, BackwardPointers<T> a, float scale) {
  TIGON_DYNAMIC_SHARED(float, q);
  float* const dout = q + kTileFloats<kHead>;
  float* const k = dout + kTileFloats<kHead>;
  float* const v = k + kTileFloats<kHead>;
  float* const p = v + kTileFloats<kHead>;
  const int kv_head = static_cast<int>(blockIdx.y), group = shape.heads / shape.kv_heads;
  const Offsets keys_at(shape, kv_head * group, kv_head);
  const int first_tile = static_cast<int>(blockIdx.x), tiles = static_cast<int>(gridDim.x);
  const int first_key = first_tile * kTile, keys = rows_from(shape, first_key);
  load_tile<kHead>(a.qkv + keys_at.k + first_key * shape.row(), shape.row(), keys, k);
  load_tile<kHead>(a.qkv + keys_at.v + first_key * shape.row(), shape.row(), keys, v);
  float dk[kRows][kColumns<kHead>] = {}, dv[kRows][kColumns<kHead>] = {};
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const Offsets at(shape, head, kv_head);
    for (int tile = first_tile; tile < tiles; ++tile) {
      const int first_row = tile * kTile, rows = rows_from(shape, first_row);
      __syncthreads();
      load_tile<kHead>(a.qkv + at.q + first_row * shape.row(), shape.row(), rows, q);
      load_tile<kHead>(a.dout + at.out + first_row * shape.q_size(), shape.q_size(), rows, dout);
      __syncthreads();
      Scores s, ds;
      multiply_rows<kHead>(k, q, s);
      multiply_rows<kHead>(v, dout, ds);
      for (int j = 0; j < kTile / kLanes; ++j) {
        const int row = my_lane() + kLanes * j;
        const bool inside = row < rows;
        const int64_t place = at.statistic + first_row + row;
        const float lse = inside ? load(a.lse + place) : 0.0f;
        const float delta = inside ? load(a.delta + place) : 0.0f;
        for (int i = 0; i < kRows; ++i) {
          const bool seen = inside && first_key + my_row() + i <= first_row + row;
          s[i][j] = seen ? fast_exp(s[i][j] * scale - lse) : 0.0f;
          ds[i][j] = s[i][j] * (ds[i][j] - delta) * scale;
        }
      }
      store_scores(s, p);
      multiply_columns<kHead>(p, dout, dv);
      store_scores(ds, p);
      multiply_columns<kHead>(p, q, dk);
    }
  }
  const PerRow one = {{1.0f, 1.0f, 1.0f, 1.0f}};
  store_tile<kHead>(dk, one, keys, a.dqkv + keys_at.k + first_key * shape.row(), shape.row());
  store_tile<kHead>(dv, one, keys, a.dqkv + keys_at.v + first_key * shape.row(), shape.row());
}

template <int kHead>
constexpr size_t shared_bytes(int head_tiles) {
  return sizeof(float) * static_cast<size_t>(head_tiles * kTileFloats<kHead> + kTile * kScoreRow);
}

LaunchConfig config_for(const AttentionShape& s, int heads, size_t shared, Stream stream) {
  return {dim3(static_cast<unsigned>(ceil_div(s.sequence, kTile)), static_cast<unsigned>(heads),
               static_cast<unsigned>(s.batch)),
          dim3(kThreads), shared, stream};
}

float scale_of(const AttentionShape& s) { return 1.0f / sqrtf(static_cast<float>(s.head_size)); }

template <int kHead, class P>
Status forward(const AttentionForward<P>& a, Stream stream) {
  return launch(config_for(a.shape, a.shape.heads, shared_bytes<kHead>(3), stream),
                forward_kernel<typename P::Elem, kHead>, a.shape, a.qkv, a.out, a.lse,
                scale_of(a.shape));
}

template <int kHead, class P>
Status backward(const AttentionBackward<P>& a, Stream stream) {
  using Elem = typename P::Elem;
  const int64_t items = a.shape.tokens() * a.shape.heads;
  const auto delta_blocks = static_cast<unsigned>(ceil_div(items, kThreads / 32));
  const BackwardPointers<Elem> pointers{a.qkv, a.dout, a.lse, a.delta, a.dqkv};
  Status s = launch({dim3(delta_blocks), dim3(kThreads), 0, stream}, delta_kernel<Elem>, a.shape,
                    a.out, a.dout, a.delta);
  if (!s.ok()) return s;
  s = launch(config_for(a.shape, a.shape.heads, shared_bytes<kHead>(4), stream),
             query_gradient_kernel<Elem, kHead>, a.shape, pointers, scale_of(a.shape));
  if (!s.ok()) return s;
  return launch(config_for(a.shape, a.shape.kv_heads, shared_bytes<kHead>(4), stream),
                key_gradient_kernel<Elem, kHead>, a.shape, pointers, scale_of(a.shape));
}

}  // namespace

template <class P>
Status attention_kernel_forward(const AttentionForward<P>& a, Stream stream) {
  switch (a.shape.head_size) {
    case 32:
      return forward<32>(a, stream);
    case 64:
      return forward<64>(a, stream);
    case 128:
      return forward<128>(a, stream);
  }
  return unsupported("attention: head size must be 32, 64 or 128");
}

template <class P>
Status attention_kernel_backward(const AttentionBackward<P>& a, Stream stream) {
  switch (a.shape.head_size) {
    case 32:
      return backward<32>(a, stream);
    case 64:
      return backward<64>(a, stream);
    case 128:
      return backward<128>(a, stream);
  }
  return unsupported("attention: head size must be 32, 64 or 128");
}

template Status attention_kernel_forward<F32>(const AttentionForward<F32>&, Stream);
template Status attention_kernel_forward<BF16>(const AttentionForward<BF16>&, Stream);
template Status attention_kernel_backward<F32>(const AttentionBackward<F32>&, Stream);
template Status attention_kernel_backward<BF16>(const AttentionBackward<BF16>&, Stream);

}  // namespace tigon::convergence
