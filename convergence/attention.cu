// SPDX-License-Identifier: Apache-2.0
// Attention kernels: tiles of 64 rows by 64 rows in shared memory, scores never in global memory.
//
// forward:  s = q k^T c, running maximum m and sum l per row, out = sum p v / l   (c = 1/sqrt(D))
// backward: p = exp(s - lse), dp = dout v^T, ds = p (dp - delta) c, dq = ds k, dk = ds^T q, dv =
// p^T dout; with a cap, s = cap tanh(q k^T c / cap) and c in ds is c (1 - (s / cap)^2)
//
// One kernel makes dq (a block per query tile), another dk and dv (a block per key tile, over the
// query heads of its group in order), so nothing is added atomically; s and dp are computed in
// both, 7 products instead of 5.
#include "convergence/attention_tiles.h"

namespace tigon::convergence {
namespace {

template <class T, int kHead>
TIGON_KERNEL(kThreads, kBlocksPerSm<kHead>)
forward_kernel(AttentionShape shape, const T* qkv, T* out, float* lse, Score score) {
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
        s[i][j] = seen ? score.of(s[i][j]) : -INFINITY;
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
query_gradient_kernel(AttentionShape shape, BackwardPointers<T> a, Score score) {
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
        const float capped = score.of(s[i][j]), probability = fast_exp(capped - lse.v[i]);
        s[i][j] = seen ? probability * (dp[i][j] - delta.v[i]) * score.slope(capped) : 0.0f;
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
key_gradient_kernel(AttentionShape shape, BackwardPointers<T> a, Score score) {
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
          const float capped = score.of(s[i][j]);
          s[i][j] = seen ? fast_exp(capped - lse) : 0.0f;
          ds[i][j] = s[i][j] * (ds[i][j] - delta) * score.slope(capped);
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

template <int kHead, class P>
Status forward(const AttentionForward<P>& a, Stream stream) {
  return launch(config_for(a.shape, a.shape.heads, shared_bytes<kHead>(3), stream),
                forward_kernel<typename P::Elem, kHead>, a.shape, a.qkv, a.out, a.lse,
                Score(a.shape));
}

template <int kHead, class P>
Status backward(const AttentionBackward<P>& a, Stream stream) {
  using Elem = typename P::Elem;
  const int64_t items = a.shape.tokens() * a.shape.heads;
  const auto delta_blocks = static_cast<unsigned>(ceil_div(items, kThreads / 32));
  float* const delta = static_cast<float*>(a.scratch.data);
  const BackwardPointers<Elem> pointers{a.qkv, a.dout, a.lse, delta, a.dqkv};
  Status s = launch({dim3(delta_blocks), dim3(kThreads), 0, stream}, delta_kernel<Elem>, a.shape,
                    a.out, a.dout, delta);
  if (!s.ok()) return s;
  s = launch(config_for(a.shape, a.shape.heads, shared_bytes<kHead>(4), stream),
             query_gradient_kernel<Elem, kHead>, a.shape, pointers, Score(a.shape));
  if (!s.ok()) return s;
  return launch(config_for(a.shape, a.shape.kv_heads, shared_bytes<kHead>(4), stream),
                key_gradient_kernel<Elem, kHead>, a.shape, pointers, Score(a.shape));
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
  if (a.scratch.bytes < delta_bytes(a.shape)) return invalid("attention: too little scratch");
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
template Status attention_kernel_forward<F16>(const AttentionForward<F16>&, Stream);
template Status attention_kernel_backward<F32>(const AttentionBackward<F32>&, Stream);
template Status attention_kernel_backward<BF16>(const AttentionBackward<BF16>&, Stream);
template Status attention_kernel_backward<F16>(const AttentionBackward<F16>&, Stream);

}  // namespace tigon::convergence
