// Tables of the ops: the kernels, and the unfused baselines.
#include "convergence/ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "convergence/converge.h"
#include "reference/naive/geglu.h"
#include "reference/naive/layer_norm.h"
#include "reference/naive/linear_cross_entropy.h"
#include "reference/naive/rms_norm.h"
#include "reference/naive/rope.h"
#include "reference/naive/swiglu.h"

namespace tigon::convergence {

template <class P>
Ops<P> fused_ops() {
  return {
      .rms_norm_forward = rms_norm::forward<P>,
      .rms_norm_backward = rms_norm::backward<P>,
      .rms_norm_workspace = rms_norm::workspace<P>,
      .layer_norm_forward = layer_norm::forward<P>,
      .layer_norm_backward = layer_norm::backward<P>,
      .layer_norm_workspace = layer_norm::workspace<P>,
      .rope_forward = rope::forward<P>,
      .rope_backward = rope::backward<P>,
      .swiglu_forward = swiglu::forward<P>,
      .swiglu_backward = swiglu::backward<P>,
      .geglu_forward = geglu::forward<P>,
      .geglu_backward = geglu::backward<P>,
      .loss_forward = linear_cross_entropy::forward<P>,
      .loss_forward_backward = linear_cross_entropy::forward_backward<P>,
      .loss_workspace = linear_cross_entropy::workspace<P>,
      .loss_gradient_workspace = linear_cross_entropy::workspace<P>,
      .loss_tune = linear_cross_entropy::tune<P>,
  };
}

// The baselines allocate their intermediates on the way instead of asking for scratch.
template <class P>
Ops<P> naive_ops() {
  return {
      .rms_norm_forward = naive::rms_norm::forward<P>,
      .rms_norm_backward = naive::rms_norm::backward<P>,
      .rms_norm_workspace = [](const rms_norm::Backward<P>&) { return size_t{0}; },
      .layer_norm_forward = naive::layer_norm::forward<P>,
      .layer_norm_backward = naive::layer_norm::backward<P>,
      .layer_norm_workspace = [](const layer_norm::Backward<P>&) { return size_t{0}; },
      .rope_forward = naive::rope::forward<P>,
      .rope_backward = naive::rope::backward<P>,
      .swiglu_forward = naive::swiglu::forward<P>,
      .swiglu_backward = naive::swiglu::backward<P>,
      .geglu_forward = naive::geglu::forward<P>,
      .geglu_backward = naive::geglu::backward<P>,
      .loss_forward = naive::linear_cross_entropy::forward<P>,
      .loss_forward_backward = naive::linear_cross_entropy::forward_backward<P>,
      .loss_workspace = [](const linear_cross_entropy::Forward<P>&) { return size_t{0}; },
      .loss_gradient_workspace =
          [](const linear_cross_entropy::ForwardBackward<P>&) { return size_t{0}; },
      .loss_tune = [](const linear_cross_entropy::ForwardBackward<P>&) { return Status{}; },
  };
}

std::vector<std::string> op_names() {
  return {"rms_norm", "layer_norm", "rope", "swiglu", "geglu", "linear_cross_entropy"};
}

template <class P>
Ops<P> mixed_ops(const std::vector<std::string>& names) {
  const Ops<P> fused = fused_ops<P>();
  Ops<P> ops = naive_ops<P>();
  for (const std::string& name : names) {
    if (name == "rms_norm") {
      ops.rms_norm_forward = fused.rms_norm_forward;
      ops.rms_norm_backward = fused.rms_norm_backward;
      ops.rms_norm_workspace = fused.rms_norm_workspace;
    } else if (name == "layer_norm") {
      ops.layer_norm_forward = fused.layer_norm_forward;
      ops.layer_norm_backward = fused.layer_norm_backward;
      ops.layer_norm_workspace = fused.layer_norm_workspace;
    } else if (name == "rope") {
      ops.rope_forward = fused.rope_forward;
      ops.rope_backward = fused.rope_backward;
    } else if (name == "swiglu") {
      ops.swiglu_forward = fused.swiglu_forward;
      ops.swiglu_backward = fused.swiglu_backward;
    } else if (name == "geglu") {
      ops.geglu_forward = fused.geglu_forward;
      ops.geglu_backward = fused.geglu_backward;
    } else if (name == "linear_cross_entropy") {
      ops.loss_forward = fused.loss_forward;
      ops.loss_forward_backward = fused.loss_forward_backward;
      ops.loss_workspace = fused.loss_workspace;
      ops.loss_gradient_workspace = fused.loss_gradient_workspace;
      ops.loss_tune = fused.loss_tune;
    } else {
      throw ConvergeError(2, fmt::format("no op '{}' in the model: there are {}", name,
                                         fmt::join(op_names(), ", ")));
    }
  }
  return ops;
}

template Ops<F32> mixed_ops<F32>(const std::vector<std::string>&);
template Ops<BF16> mixed_ops<BF16>(const std::vector<std::string>&);
template Ops<F32> fused_ops<F32>();
template Ops<BF16> fused_ops<BF16>();
template Ops<F32> naive_ops<F32>();
template Ops<BF16> naive_ops<BF16>();

}  // namespace tigon::convergence
