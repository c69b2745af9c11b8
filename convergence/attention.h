// SPDX-License-Identifier: Apache-2.0
// Causal grouped-query attention with O(T) memory, the same on both sides of a comparison: cuDNN's
// fused attention on a GPU (cudnn_attention.h), else a tiled kernel (attention.cu; Dao et al.
// 2022), and plain C++ on the cores of a CPU (attention_host.cpp).
#pragma once
#include <cstdint>
#include <string>

#include "kernels/signature/signature.h"

namespace tigon::convergence {

struct AttentionShape {
  int batch, sequence, heads, kv_heads, head_size;  // head size 32, 64 or 128
  float softcap = 0.0f;  // scores s become softcap tanh(s / softcap), as in Gemma 2; 0: they do not
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
  const Elem* qkv;       // [tokens, row]
  Elem* out;             // [tokens, q_size]
  float* lse;            // [batch, heads, sequence]; kept for backward
  Scratch scratch = {};  // attention_plan().forward_bytes
};

// Probabilities are computed again from lse. Our own sums run in a fixed order, without atomics.
template <class P>
struct AttentionBackward {
  using Elem = typename P::Elem;
  AttentionShape shape;
  const Elem *qkv, *out, *dout;
  const float* lse;
  Elem* dqkv;            // [tokens, row]
  Scratch scratch = {};  // attention_plan().backward_bytes
};

// Kernels, on a GPU or on the host executor; fp32 throughout between loads and stores. Backward
// needs delta_bytes() of scratch.
template <class P>
Status attention_kernel_forward(const AttentionForward<P>& args, Stream stream);
template <class P>
Status attention_kernel_backward(const AttentionBackward<P>& args, Stream stream);

// Sums over a head of dout * out: float [batch, heads, sequence].
inline size_t delta_bytes(const AttentionShape& s) {
  return static_cast<size_t>(s.tokens() * s.heads) * sizeof(float);
}

// Host threads; memory is the CPU's, and no scratch is needed. One row of scores per thread is held
// at a time.
template <class P>
Status attention_host_forward(const AttentionForward<P>& args);
template <class P>
Status attention_host_backward(const AttentionBackward<P>& args);

// How attention of a shape and type runs here.
struct AttentionPlan {
  // "cuDNN", "cuDNN, backward adds in any order", "own kernel", "own kernel; cuDNN: " and why not,
  // "host threads"
  std::string by;
  size_t forward_bytes = 0, backward_bytes = 0;  // scratch
};

// Chooses, which with cuDNN compiles; once per shape and process, not while a graph is captured.
AttentionPlan attention_prepare(const AttentionShape& shape, DType dtype);

// What was chosen; before attention_prepare() what will probably be, with an estimate of cuDNN's
// scratch.
AttentionPlan attention_plan(const AttentionShape& shape, DType dtype);

// What the trainer calls. Shapes that were not prepared run by our own kernel on a GPU; on a CPU
// all run by threads, which are faster than the kernel's fibers.
template <class P>
Status attention_forward(const AttentionForward<P>& args, Stream stream);
template <class P>
Status attention_backward(const AttentionBackward<P>& args, Stream stream);

}  // namespace tigon::convergence
