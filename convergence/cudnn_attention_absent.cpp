// A build without cudnn-frontend.
#include "convergence/cudnn_attention.h"

namespace tigon::convergence {

std::string cudnn_attention_version() { return ""; }

std::optional<CudnnAttentionPlan> cudnn_attention_prepare(const AttentionShape&, DType) {
  return std::nullopt;
}

std::optional<CudnnAttentionPlan> cudnn_attention_plan(const AttentionShape&, DType) {
  return std::nullopt;
}

bool cudnn_attention_ready(const AttentionShape&, DType) { return false; }

Status cudnn_attention_forward(const CudnnForward&, Stream) {
  return unsupported("attention: built without cudnn-frontend");
}

Status cudnn_attention_backward(const CudnnBackward&, Stream) {
  return unsupported("attention: built without cudnn-frontend");
}

}  // namespace tigon::convergence
