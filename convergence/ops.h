// The five ops as a table of functions: what a comparison switches.
#pragma once
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"

namespace tigon::convergence {

template <class P>
struct Ops {
  template <class Args>
  using Pass = Status (*)(const Args&, Stream);
  template <class Args>
  using Workspace = size_t (*)(const Args&);

  Pass<rms_norm::Forward<P>> rms_norm_forward;
  Pass<rms_norm::Backward<P>> rms_norm_backward;
  Workspace<rms_norm::Backward<P>> rms_norm_workspace;
  Pass<rope::Forward<P>> rope_forward;
  Pass<rope::Backward<P>> rope_backward;
  Pass<swiglu::Forward<P>> swiglu_forward;
  Pass<swiglu::Backward<P>> swiglu_backward;
  Pass<linear_cross_entropy::Forward<P>> loss_forward;
  Pass<linear_cross_entropy::ForwardBackward<P>> loss_forward_backward;
  Workspace<linear_cross_entropy::Forward<P>> loss_workspace;
  Workspace<linear_cross_entropy::ForwardBackward<P>> loss_gradient_workspace;
  Status (*loss_tune)(const linear_cross_entropy::ForwardBackward<P>&);
};

// The kernels; head and cross entropy (both ops) in one pass over chunks of rows.
template <class P>
Ops<P> fused_ops();

// One library call per primitive step; all logits at once, as an eager framework holds them.
template <class P>
Ops<P> naive_ops();

}  // namespace tigon::convergence
