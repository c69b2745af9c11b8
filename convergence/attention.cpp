// SPDX-License-Identifier: Apache-2.0
// Which attention runs: cuDNN's where it was prepared, else our own.
#include "convergence/attention.h"

#include <type_traits>

#include "convergence/cudnn_attention.h"

namespace tigon::convergence {
namespace {

// Whether cuDNN may take it at all: it multiplies fp32 as TF32, and has no cap.
bool cudnn_may_run(const AttentionShape& shape, DType dtype) {
  return dtype != DType::kF32 && shape.softcap == 0.0f;
}

// `refusal`: why cuDNN does not run what it may.
AttentionPlan own_plan(const AttentionShape& shape, const std::string& refusal = {}) {
#ifdef TIGON_CUDA
  return {refusal.empty() ? "own kernel" : "own kernel; cuDNN: " + refusal, 0, delta_bytes(shape)};
#else
  return static_cast<void>(shape), static_cast<void>(refusal), AttentionPlan{"host threads"};
#endif
}

AttentionPlan plan_of(const AttentionShape& shape, const CudnnAttentionPlan& plan) {
  if (!plan.refusal.empty()) return own_plan(shape, plan.refusal);
  return {plan.deterministic ? "cuDNN" : "cuDNN, backward adds in any order", plan.forward_bytes,
          plan.backward_bytes};
}

}  // namespace

AttentionPlan attention_prepare(const AttentionShape& shape, DType dtype) {
  if (!cudnn_may_run(shape, dtype)) return own_plan(shape);
  return plan_of(shape, cudnn_attention_prepare(shape, dtype));
}

AttentionPlan attention_plan(const AttentionShape& shape, DType dtype) {
  if (!cudnn_may_run(shape, dtype)) return own_plan(shape);
  return plan_of(shape, cudnn_attention_plan(shape, dtype));
}

template <class P>
Status attention_forward(const AttentionForward<P>& a, Stream stream) {
  constexpr DType kType = dtype_of<typename P::Elem>;
  if (cudnn_may_run(a.shape, kType) && cudnn_attention_ready(a.shape, kType))
    return cudnn_attention_forward({a.shape, kType, a.qkv, a.out, a.lse, a.scratch}, stream);
#ifdef TIGON_CUDA
  return attention_kernel_forward(a, stream);
#else
  return attention_host_forward(a);
#endif
}

template <class P>
Status attention_backward(const AttentionBackward<P>& a, Stream stream) {
  constexpr DType kType = dtype_of<typename P::Elem>;
  if (cudnn_may_run(a.shape, kType) && cudnn_attention_ready(a.shape, kType))
    return cudnn_attention_backward(
        {a.shape, kType, a.qkv, a.out, a.dout, a.lse, a.dqkv, a.scratch}, stream);
#ifdef TIGON_CUDA
  return attention_kernel_backward(a, stream);
#else
  return attention_host_backward(a);
#endif
}

template Status attention_forward<F32>(const AttentionForward<F32>&, Stream);
template Status attention_forward<BF16>(const AttentionForward<BF16>&, Stream);
template Status attention_backward<F32>(const AttentionBackward<F32>&, Stream);
template Status attention_backward<BF16>(const AttentionBackward<BF16>&, Stream);

}  // namespace tigon::convergence
