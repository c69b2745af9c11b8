// Causal grouped-query attention with O(T) memory, the same on both sides of a comparison: a tiled
// kernel (attention.cu; Dao et al. 2022) and plain C++ on the cores of a CPU (attention_host.cpp).
#pragma once
#include <cstdint>

#include "kernels/signature/signature.h"

namespace tigon::convergence {

struct AttentionShape {
  int batch, sequence, heads, kv_heads, head_size;  // head size 32, 64 or 128
  TIGON_HOST_DEVICE int64_t q_size() const { return int64_t{heads} * head_size; }
  TIGON_HOST_DEVICE int64_t row() const {
    return q_size() + 2 * int64_t{kv_heads} * head_size;
  }  // of qkv
  TIGON_HOST_DEVICE int64_t tokens() const { return int64_t{batch} * sequence; }
};

// out = softmax(q k^T / sqrt(head size), causal) v. A row of qkv holds the heads of q, of k, of v.
template <class P>
struct AttentionForward {
  using Elem = typename P::Elem;
  AttentionShape shape;
  const Elem* qkv;  // [tokens, row]
  Elem* out;        // [tokens, q_size]
  float* lse;       // [batch, heads, sequence]; kept for backward
};

// Probabilities are computed again from lse. All sums run in a fixed order, without atomics.
template <class P>
struct AttentionBackward {
  using Elem = typename P::Elem;
  AttentionShape shape;
  const Elem *qkv, *out, *dout;
  const float* lse;
  Elem* dqkv;    // [tokens, row]
  float* delta;  // [batch, heads, sequence]; scratch: sum over a head of dout * out
};

// Kernels, on a GPU or on the host executor; fp32 throughout between loads and stores.
template <class P>
Status attention_kernel_forward(const AttentionForward<P>& args, Stream stream);
template <class P>
Status attention_kernel_backward(const AttentionBackward<P>& args, Stream stream);

// Host threads; memory is the CPU's. One row of scores per thread is held at a time.
template <class P>
Status attention_host_forward(const AttentionForward<P>& args);
template <class P>
Status attention_host_backward(const AttentionBackward<P>& args);

// What the trainer calls: kernels on a GPU; threads on a CPU, where they are ten times as fast as
// the kernel's fibers.
template <class P>
Status attention_forward(const AttentionForward<P>& args, Stream stream) {
#ifdef TIGON_CUDA
  return attention_kernel_forward(args, stream);
#else
  return static_cast<void>(stream), attention_host_forward(args);
#endif
}
template <class P>
Status attention_backward(const AttentionBackward<P>& args, Stream stream) {
#ifdef TIGON_CUDA
  return attention_kernel_backward(args, stream);
#else
  return static_cast<void>(stream), attention_host_backward(args);
#endif
}

}  // namespace tigon::convergence
