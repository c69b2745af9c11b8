// SPDX-License-Identifier: Apache-2.0
// Attention on the cores of a CPU: one key head at a time is converted to fp32, its query heads run
// row by row. Work is dealt by key head, so results do not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <vector>

#include "convergence/attention.h"
#include "convergence/threads.h"

namespace tigon::convergence {
namespace {

using Floats = std::vector<float>;

// The [sequence, head size] block of a matrix of rows as fp32, or its transpose.
template <class T>
struct Head {
  const T* data;
  int64_t stride;
  int sequence, size;

  Floats rows() const {
    Floats f(static_cast<size_t>(sequence) * size);
    for (int s = 0; s < sequence; ++s)
      for (int d = 0; d < size; ++d)
        f[static_cast<size_t>(s) * size + d] = static_cast<float>(data[s * stride + d]);
    return f;
  }
  Floats columns() const {
    Floats f(static_cast<size_t>(sequence) * size);
    for (int s = 0; s < sequence; ++s)
      for (int d = 0; d < size; ++d)
        f[static_cast<size_t>(d) * sequence + s] = static_cast<float>(data[s * stride + d]);
    return f;
  }
};

// Where the heads of one sequence begin in rows of q, k, v.
struct Place {
  AttentionShape shape;
  int b, kv;  // sequence, key head

  int group() const { return shape.heads / shape.kv_heads; }
  int head(int g) const { return kv * group() + g; }
  int64_t q(int g) const { return qkv_row() + int64_t{head(g)} * shape.head_size; }
  int64_t k() const { return qkv_row() + shape.q_size() + int64_t{kv} * shape.head_size; }
  int64_t v() const { return k() + int64_t{shape.kv_heads} * shape.head_size; }
  int64_t out(int g) const {
    return int64_t{b} * shape.sequence * shape.q_size() + int64_t{head(g)} * shape.head_size;
  }
  int64_t statistic(int g) const { return (int64_t{b} * shape.heads + head(g)) * shape.sequence; }
  template <class T>
  Head<T> head_of_qkv(const T* qkv, int64_t offset) const {
    return {qkv + offset, shape.row(), shape.sequence, shape.head_size};
  }
  template <class T>
  Head<T> head_of_out(const T* out_data, int g) const {
    return {out_data + out(g), shape.q_size(), shape.sequence, shape.head_size};
  }

 private:
  int64_t qkv_row() const { return int64_t{b} * shape.sequence * shape.row(); }
};

template <class F>
void for_each_place(const AttentionShape& shape, F&& f) {
  parallel_for(shape.batch * shape.kv_heads, [&](int i) {
    f(Place{shape, i / shape.kv_heads, i % shape.kv_heads});
  });
}

// s[j] = sum_d row[d] columns[d, j] for j < n.
void dot_columns(const float* row, const Floats& columns, const AttentionShape& shape, int n,
                 float scale, float* s) {
  std::fill(s, s + n, 0.0f);
  for (int d = 0; d < shape.head_size; ++d) {
    const float x = row[d] * scale;
    const float* column = columns.data() + static_cast<size_t>(d) * shape.sequence;
    for (int j = 0; j < n; ++j) s[j] += x * column[j];
  }
}

// cap tanh(s / cap) of n scores, where there is a cap.
void cap_scores(float cap, int n, float* s) {
  if (cap == 0.0f) return;
  for (int j = 0; j < n; ++j) s[j] = cap * std::tanh(s[j] / cap);
}

// Its derivative, where it gave s.
float cap_slope(float cap, float s) {
  const float t = cap == 0.0f ? 0.0f : s / cap;
  return 1.0f - t * t;
}

void add_scaled(float scale, const float* from, int n, float* to) {
  for (int d = 0; d < n; ++d) to[d] += scale * from[d];
}

template <class T>
void store_rows(const Floats& f, int size, T* to, int64_t stride) {
  for (size_t i = 0; i < f.size(); ++i)
    to[static_cast<int64_t>(i) / size * stride + static_cast<int64_t>(i) % size] = T(f[i]);
}

}  // namespace

template <class P>
Status attention_host_forward(const AttentionForward<P>& a) {
  const int size = a.shape.head_size;
  const float scale = 1.0f / std::sqrt(static_cast<float>(size));
  for_each_place(a.shape, [&](const Place& at) {
    const Floats k = at.head_of_qkv(a.qkv, at.k()).columns();
    const Floats v = at.head_of_qkv(a.qkv, at.v()).rows();
    Floats p(static_cast<size_t>(a.shape.sequence));
    for (int g = 0; g < at.group(); ++g) {
      const Floats q = at.head_of_qkv(a.qkv, at.q(g)).rows();
      Floats out(q.size(), 0.0f);
      for (int i = 0; i < a.shape.sequence; ++i) {
        const size_t row = static_cast<size_t>(i) * size;
        dot_columns(&q[row], k, a.shape, i + 1, scale, p.data());
        cap_scores(a.shape.softcap, i + 1, p.data());
        const float most = *std::max_element(p.begin(), p.begin() + i + 1);
        float sum = 0.0f;
        for (int j = 0; j <= i; ++j) sum += p[j] = std::exp(p[j] - most);
        for (int j = 0; j <= i; ++j)
          add_scaled(p[j] / sum, &v[static_cast<size_t>(j) * size], size, &out[row]);
        a.lse[at.statistic(g) + i] = most + std::log(sum);
      }
      store_rows(out, size, a.out + at.out(g), a.shape.q_size());
    }
  });
  return {};
}

template <class P>
Status attention_host_backward(const AttentionBackward<P>& a) {
  const int size = a.shape.head_size;
  const float scale = 1.0f / std::sqrt(static_cast<float>(size));
  for_each_place(a.shape, [&](const Place& at) {
    const Floats k_rows = at.head_of_qkv(a.qkv, at.k()).rows();
    const Floats k = at.head_of_qkv(a.qkv, at.k()).columns();
    const Floats v = at.head_of_qkv(a.qkv, at.v()).columns();
    Floats dk(k.size(), 0.0f), dv(k.size(), 0.0f);
    Floats p(static_cast<size_t>(a.shape.sequence)), dp(p.size());
    for (int g = 0; g < at.group(); ++g) {
      const Floats q = at.head_of_qkv(a.qkv, at.q(g)).rows();
      const Floats out = at.head_of_out(a.out, g).rows();
      const Floats dout = at.head_of_out(a.dout, g).rows();
      Floats dq(q.size(), 0.0f);
      for (int i = 0; i < a.shape.sequence; ++i) {
        const size_t row = static_cast<size_t>(i) * size;
        dot_columns(&q[row], k, a.shape, i + 1, scale, p.data());
        cap_scores(a.shape.softcap, i + 1, p.data());
        dot_columns(&dout[row], v, a.shape, i + 1, 1.0f, dp.data());
        const float lse = a.lse[at.statistic(g) + i];
        float delta = 0.0f;
        for (int d = 0; d < size; ++d) delta += dout[row + d] * out[row + d];
        for (int j = 0; j <= i; ++j) {
          const size_t key = static_cast<size_t>(j) * size;
          const float probability = std::exp(p[j] - lse);
          const float ds = probability * (dp[j] - delta) * scale * cap_slope(a.shape.softcap, p[j]);
          add_scaled(ds, &k_rows[key], size, &dq[row]);
          add_scaled(ds, &q[row], size, &dk[key]);
          add_scaled(probability, &dout[row], size, &dv[key]);
        }
      }
      store_rows(dq, size, a.dqkv + at.q(g), a.shape.row());
    }
    store_rows(dk, size, a.dqkv + at.k(), a.shape.row());
    store_rows(dv, size, a.dqkv + at.v(), a.shape.row());
  });
  return {};
}

template Status attention_host_forward<F32>(const AttentionForward<F32>&);
template Status attention_host_forward<BF16>(const AttentionForward<BF16>&);
template Status attention_host_backward<F32>(const AttentionBackward<F32>&);
template Status attention_host_backward<BF16>(const AttentionBackward<BF16>&);

}  // namespace tigon::convergence
