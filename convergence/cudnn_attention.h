// SPDX-License-Identifier: Apache-2.0
// cuDNN's fused attention, bf16 and f16, causal, through the header-only cudnn-frontend
// (cudnn_attention.cpp). Without that header or a GPU there is none: cudnn_attention_absent.cpp.
#pragma once
#include <string>

#include "convergence/attention.h"

namespace tigon::convergence {

// The frontend that this program was built with, "cudnn-frontend 1.32.0", or empty without one.
std::string cudnn_attention_version();

struct CudnnAttentionPlan {
  std::string refusal = {};    // why cuDNN has none for the shape; else empty
  bool deterministic = false;  // backward; else it adds in the order that blocks finish
  size_t forward_bytes = 0, backward_bytes = 0;  // scratch
};

// Compiles cuDNN's plans for a shape, once per process. Backward is deterministic up to 256 MiB of
// scratch for it, which on Hopper grows with the square of the sequence.
CudnnAttentionPlan cudnn_attention_prepare(const AttentionShape& shape, DType dtype);

// What was prepared; before that an estimate, from a sequence of the same heads that is compiled
// once per process.
CudnnAttentionPlan cudnn_attention_plan(const AttentionShape& shape, DType dtype);

// Whether there are plans for a shape.
bool cudnn_attention_ready(const AttentionShape& shape, DType dtype);

// Arguments as of AttentionForward and AttentionBackward, in `dtype`.
struct CudnnForward {
  AttentionShape shape;
  DType dtype;
  const void* qkv;
  void* out;
  float* lse;
  Scratch scratch;
};
struct CudnnBackward {
  AttentionShape shape;
  DType dtype;
  const void *qkv, *out, *dout;
  const float* lse;
  void* dqkv;
  Scratch scratch;
};

// Only of shapes that are ready. They allocate nothing, and can be captured into a graph.
Status cudnn_attention_forward(const CudnnForward& args, Stream stream);
Status cudnn_attention_backward(const CudnnBackward& args, Stream stream);

}  // namespace tigon::convergence
