// The ops as a table of functions: what a comparison switches.
#pragma once
#include <string>
#include <vector>

#include "kernels/geglu/geglu.h"
#include "kernels/layer_norm/layer_norm.h"
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
  Pass<layer_norm::Forward<P>> layer_norm_forward;
  Pass<layer_norm::Backward<P>> layer_norm_backward;
  Workspace<layer_norm::Backward<P>> layer_norm_workspace;
  Pass<rope::Forward<P>> rope_forward;
  Pass<rope::Backward<P>> rope_backward;
  Pass<swiglu::Forward<P>> swiglu_forward;
  Pass<swiglu::Backward<P>> swiglu_backward;
  Pass<geglu::Forward<P>> geglu_forward;
  Pass<geglu::Backward<P>> geglu_backward;
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

// Those of `fused` by name (op_names()) as kernels, the rest unfused.
template <class P>
Ops<P> mixed_ops(const std::vector<std::string>& fused);
std::vector<std::string> op_names();

}  // namespace tigon::convergence
