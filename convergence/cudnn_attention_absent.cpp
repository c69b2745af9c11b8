// SPDX-License-Identifier: Apache-2.0
// A build without cudnn-frontend.
#include "convergence/cudnn_attention.h"

namespace tigon::convergence {
namespace {

constexpr const char* kAbsent = "built without cudnn-frontend";

}  // namespace

std::string cudnn_attention_version() { return ""; }

CudnnAttentionPlan cudnn_attention_prepare(const AttentionShape&, DType) {
  return {.refusal = kAbsent};
}

CudnnAttentionPlan cudnn_attention_plan(const AttentionShape&, DType) {
  return {.refusal = kAbsent};
}

bool cudnn_attention_ready(const AttentionShape&, DType) { return false; }

Status cudnn_attention_forward(const CudnnForward&, Stream) { return unsupported(kAbsent); }

Status cudnn_attention_backward(const CudnnBackward&, Stream) { return unsupported(kAbsent); }

}  // namespace tigon::convergence
