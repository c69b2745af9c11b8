// The losses: of the backbone's head and of Medusa heads, each over the full vocabulary.
#include <cmath>

#include "convergence/kernels.h"
#include "convergence/model.h"
#include "convergence/require.h"

namespace tigon::convergence {
namespace {

double medusa_scale(int head) { return std::pow(0.8, head + 1); }

}  // namespace

template <class P>
linear_cross_entropy::Forward<P> Model<P>::loss_args(const Buffers& b, int head) const {
  linear_cross_entropy::Forward<P> args;
  const auto k = static_cast<size_t>(head);
  const Elem* const x = head < 0 ? b.normed : b.medusa.x;
  const Elem* const w = b.weight + (head < 0 ? layout_.head : layout_.medusa[k].head);
  const int64_t* const target = head < 0 ? b.target : b.medusa.target[k];
  args.x = view(x, tokens(), hidden());
  args.w = view(w, config_.vocabulary, hidden());
  args.target = view(target, tokens());
  args.loss = view(b.loss + head + 1, 1);
  args.lse = view(b.row_lse, tokens());
  args.softcap = config_.softcap;
  args.logits_bytes = config_.logits_bytes;
  args.scratch = b.loss_scratch;
  return args;
}

template <class P>
linear_cross_entropy::ForwardBackward<P> Model<P>::loss_gradient_args(const Buffers& b,
                                                                      int head) const {
  const linear_cross_entropy::Forward<P> forward = loss_args(b, head);
  linear_cross_entropy::ForwardBackward<P> args;
  args.x = forward.x;
  args.w = forward.w;
  args.target = forward.target;
  args.loss = forward.loss;
  args.lse = forward.lse;
  args.softcap = forward.softcap;
  args.logits_bytes = forward.logits_bytes;
  args.scratch = forward.scratch;
  Elem* dw = nullptr;
  if (head < 0) {
    args.dx = view(b.dnormed, tokens(), hidden());
    dw = b.gradient + layout_.head;
  } else {
    const float* const scale = b.medusa.scale + head;
    args.dloss = view(scale, 1);
    args.dx = view(b.medusa.dx, tokens(), hidden());
    dw = b.gradient + layout_.medusa[static_cast<size_t>(head)].head;
  }
  args.dw = view(dw, config_.vocabulary, hidden());
  return args;
}

template <class P>
void Model<P>::upload_medusa_scales() {
  std::vector<float> scales;
  for (int k = 0; k < config_.medusa; ++k) scales.push_back(static_cast<float>(medusa_scale(k)));
  device_upload(b_.medusa.scale, scales.data(), scales.size() * sizeof(float), stream_);
}

// Head k learns what the backbone's head learns k + 1 places on; what lies beyond the sequence is
// ignored.
template <class P>
void Model<P>::upload_medusa_targets(const Batch& batch) {
  const auto sequence = static_cast<size_t>(config_.sequence);
  for (int k = 0; k < config_.medusa; ++k) {
    std::vector<int64_t> target(batch.target.size(), kIgnored);
    const auto ahead = static_cast<size_t>(k) + 1;
    for (size_t i = 0; i < target.size(); ++i)
      if (i % sequence + ahead < sequence) target[i] = batch.target[i + ahead];
    device_upload(b_.medusa.target[static_cast<size_t>(k)], target.data(),
                  target.size() * sizeof(int64_t), stream_);
  }
}

template <class P>
void Model<P>::medusa_input(int head) {
  const ParameterLayout::MedusaHead& w = layout_.medusa[static_cast<size_t>(head)];
  const MedusaBuffers& m = b_.medusa;
  multiply(product(hidden(), hidden(), b_.normed, weight(w.residual), m.before));
  const PartRange range = part(Part::kActivation);
  const Elem *const x = b_.normed, *const before = m.before;
  require(add_silu(x, before, m.x, tokens() * hidden(), stream_), "activation of a Medusa head");
}

template <class P>
void Model<P>::loss_gradient(int head) {
  const PartRange range = part(Part::kLoss);
  require(ops_.run(loss_gradient_args(b_, head), stream_), "linear_cross_entropy forward_backward");
}

template <class P>
void Model<P>::medusa_gradient(int head) {
  const ParameterLayout::MedusaHead& w = layout_.medusa[static_cast<size_t>(head)];
  const MedusaBuffers& m = b_.medusa;
  const int64_t size = tokens() * hidden();
  loss_gradient(head);
  const Elem *const dx = m.dx, *const before = m.before;
  {
    const PartRange range = part(Part::kActivation);
    require(silu_gradient(dx, before, m.dbefore, size, stream_), "activation of a Medusa head");
  }
  multiply(weight_gradient(hidden(), hidden(), m.dbefore, b_.normed, gradient(w.residual)));
  if (config_.frozen) return;
  add_residual(b_.dnormed, dx, b_.dnormed);
  Gemm sum = input_gradient(hidden(), hidden(), m.dbefore, weight(w.residual), b_.dnormed);
  sum.beta = 1.0f;
  multiply(sum);
}

template <class P>
void Model<P>::loss_and_head_gradient() {
  if (!config_.frozen) loss_gradient(-1);
  for (int k = 0; k < config_.medusa; ++k) {
    medusa_input(k);
    medusa_gradient(k);
  }
  if (!config_.frozen)
    norm_backward(b_.dnormed, b_.x.back(), layout_.final_norm, b_.final_norm, b_.dx);
}

template <class P>
double Model<P>::total_loss() {
  const PartRange range = part(Part::kOther);
  std::vector<float> losses(static_cast<size_t>(config_.medusa) + 1);
  device_download(losses.data(), b_.loss, losses.size() * sizeof(float), stream_);
  double sum = config_.frozen ? 0.0 : static_cast<double>(losses[0]);
  for (int k = 0; k < config_.medusa; ++k)
    sum += medusa_scale(k) * static_cast<double>(losses[static_cast<size_t>(k) + 1]);
  return sum;
}

template <class P>
double Model<P>::evaluate(const Batch& batch) {
  graphs_.release();
  upload(batch);
  forward();
  for (int head = first_head(); head < config_.medusa; ++head) {
    if (head >= 0) medusa_input(head);
    require(ops_.run(loss_args(b_, head), stream_), "linear_cross_entropy forward");
  }
  return total_loss();
}

template class Model<F32>;
template class Model<BF16>;

}  // namespace tigon::convergence
