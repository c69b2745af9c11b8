// SPDX-License-Identifier: Apache-2.0
// Losses with their gradients.
#include "convergence/model_loss.h"

#include <algorithm>
#include <cmath>

#include "convergence/kernels.h"
#include "convergence/require.h"

namespace tigon::convergence {
namespace {

double medusa_scale(int head) { return std::pow(0.8, head + 1); }

}  // namespace

template <class P>
linear_cross_entropy::Forward<P> ModelLosses<P>::args(int head) const {
  const ModelBuffers<Elem>& b = c_.b;
  const auto k = static_cast<size_t>(head);
  const Elem* const x = head < 0 ? b.normed : b.medusa.x;
  const Elem* const w = c_.weight(head < 0 ? c_.layout.head : c_.layout.medusa[k].head);
  const int64_t* const target = head < 0 ? b.target : b.medusa.target[k];
  linear_cross_entropy::Forward<P> args;
  args.x = view(x, c_.tokens(), c_.hidden());
  args.w = view(w, c_.config.vocabulary, c_.hidden());
  args.target = view(target, c_.tokens());
  args.loss = view(b.loss + head + 1, 1);
  args.lse = view(b.row_lse, c_.tokens());
  args.softcap = c_.config.softcap;
  args.logits_bytes = c_.config.logits_bytes;
  args.scratch = b.loss_scratch;
  return args;
}

template <class P>
linear_cross_entropy::ForwardBackward<P> ModelLosses<P>::gradient_args(int head) const {
  const linear_cross_entropy::Forward<P> forward = args(head);
  linear_cross_entropy::ForwardBackward<P> args;
  args.x = forward.x;
  args.w = forward.w;
  args.target = forward.target;
  args.loss = forward.loss;
  args.lse = forward.lse;
  args.softcap = forward.softcap;
  args.logits_bytes = forward.logits_bytes;
  args.scratch = forward.scratch;
  int64_t weight = c_.layout.head;
  Elem* dx = c_.b.dnormed;
  if (head >= 0) {
    const float* const scale = c_.b.medusa.scale + head;
    args.dloss = view(scale, 1);
    dx = c_.b.medusa.dx;
    weight = c_.layout.medusa[static_cast<size_t>(head)].head;
  }
  args.dx = view(dx, c_.tokens(), c_.hidden());
  args.dw = view(c_.gradient(weight), c_.config.vocabulary, c_.hidden());
  return args;
}

template <class P>
size_t ModelLosses<P>::workspace() const {
  size_t bytes = 0;
  for (int head = first_head(); head < c_.config.medusa; ++head)
    bytes = std::max({bytes, c_.ops.workspace(args(head)), c_.ops.workspace(gradient_args(head))});
  return bytes;
}

template <class P>
void ModelLosses<P>::tune() const {
  require(c_.ops.prepare(gradient_args(first_head())), "choice of a matrix product");
}

template <class P>
void ModelLosses<P>::upload_scales() const {
  std::vector<float> scales;
  for (int k = 0; k < c_.config.medusa; ++k) scales.push_back(static_cast<float>(medusa_scale(k)));
  device_upload(c_.b.medusa.scale, scales.data(), scales.size() * sizeof(float), c_.stream);
}

// Head k learns what the backbone's head learns k + 1 places on; what lies beyond the sequence is
// ignored.
template <class P>
void ModelLosses<P>::upload_targets(const Batch& batch) const {
  const auto sequence = static_cast<size_t>(c_.config.sequence);
  for (int k = 0; k < c_.config.medusa; ++k) {
    std::vector<int64_t> target(batch.target.size(), kIgnored);
    const auto ahead = static_cast<size_t>(k) + 1;
    for (size_t i = 0; i < target.size(); ++i)
      if (i % sequence + ahead < sequence) target[i] = batch.target[i + ahead];
    device_upload(c_.b.medusa.target[static_cast<size_t>(k)], target.data(),
                  target.size() * sizeof(int64_t), c_.stream);
  }
}

template <class P>
void ModelLosses<P>::medusa_input(int head) const {
  const ParameterLayout::MedusaHead& w = c_.layout.medusa[static_cast<size_t>(head)];
  const MedusaBuffers<Elem>& m = c_.b.medusa;
  products_.forward(c_.hidden(), c_.hidden(), c_.b.normed, w.residual, m.before);
  const PartRange range = c_.part(Part::kActivation);
  const Elem *const x = c_.b.normed, *const before = m.before;
  require(add_silu(x, before, m.x, c_.tokens() * c_.hidden(), c_.stream),
          "activation of a Medusa head");
}

template <class P>
void ModelLosses<P>::gradient(int head) const {
  const PartRange range = c_.part(Part::kLoss);
  require(c_.ops.run(gradient_args(head), c_.stream), "linear_cross_entropy forward_backward");
}

template <class P>
void ModelLosses<P>::medusa_activation_gradient() const {
  const PartRange range = c_.part(Part::kActivation);
  const MedusaBuffers<Elem>& m = c_.b.medusa;
  const Elem *const dx = m.dx, *const before = m.before;
  require(silu_gradient(dx, before, m.dbefore, c_.tokens() * c_.hidden(), c_.stream),
          "activation of a Medusa head");
}

template <class P>
void ModelLosses<P>::medusa_gradient(int head) const {
  const int64_t hidden = c_.hidden(), w = c_.layout.medusa[static_cast<size_t>(head)].residual;
  const MedusaBuffers<Elem>& m = c_.b.medusa;
  Elem *const normed = c_.b.normed, *const dnormed = c_.b.dnormed;
  gradient(head);
  medusa_activation_gradient();
  products_.run(products_.weight_gradient(hidden, hidden, m.dbefore, normed, c_.gradient(w)));
  if (c_.config.frozen) return;
  ops_.add_residual(dnormed, m.dx, dnormed);
  Gemm sum = products_.input_gradient(hidden, hidden, m.dbefore, c_.weight(w), dnormed);
  sum.beta = 1.0f;
  products_.run(sum);
}

template <class P>
void ModelLosses<P>::run_with_gradients() const {
  if (!c_.config.frozen) gradient(-1);
  for (int k = 0; k < c_.config.medusa; ++k) {
    medusa_input(k);
    medusa_gradient(k);
  }
  if (!c_.config.frozen)
    norms_.backward(c_.b.dnormed, c_.b.x.back(), c_.layout.final_norm, c_.b.final_norm, c_.b.dx);
}

template <class P>
void ModelLosses<P>::evaluate() const {
  for (int head = first_head(); head < c_.config.medusa; ++head) {
    if (head >= 0) medusa_input(head);
    require(c_.ops.run(args(head), c_.stream), "linear_cross_entropy forward");
  }
}

template <class P>
double ModelLosses<P>::total() const {
  const PartRange range = c_.part(Part::kOther);
  std::vector<float> losses(static_cast<size_t>(c_.config.medusa) + 1);
  device_download(losses.data(), c_.b.loss, losses.size() * sizeof(float), c_.stream);
  double sum = c_.config.frozen ? 0.0 : static_cast<double>(losses[0]);
  for (int k = 0; k < c_.config.medusa; ++k)
    sum += medusa_scale(k) * static_cast<double>(losses[static_cast<size_t>(k) + 1]);
  return sum;
}

template class ModelLosses<F32>;
template class ModelLosses<BF16>;

}  // namespace tigon::convergence
