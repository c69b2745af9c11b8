// Tables of the five ops: the kernels, and the unfused baselines.
#include "convergence/ops.h"

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
      .rope_forward = rope::forward<P>,
      .rope_backward = rope::backward<P>,
      .swiglu_forward = swiglu::forward<P>,
      .swiglu_backward = swiglu::backward<P>,
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
      .rope_forward = naive::rope::forward<P>,
      .rope_backward = naive::rope::backward<P>,
      .swiglu_forward = naive::swiglu::forward<P>,
      .swiglu_backward = naive::swiglu::backward<P>,
      .loss_forward = naive::linear_cross_entropy::forward<P>,
      .loss_forward_backward = naive::linear_cross_entropy::forward_backward<P>,
      .loss_workspace = [](const linear_cross_entropy::Forward<P>&) { return size_t{0}; },
      .loss_gradient_workspace =
          [](const linear_cross_entropy::ForwardBackward<P>&) { return size_t{0}; },
      .loss_tune = [](const linear_cross_entropy::ForwardBackward<P>&) { return Status{}; },
  };
}

template Ops<F32> fused_ops<F32>();
template Ops<BF16> fused_ops<BF16>();
template Ops<F32> naive_ops<F32>();
template Ops<BF16> naive_ops<BF16>();

}  // namespace tigon::convergence
