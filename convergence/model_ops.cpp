// The ops of a layer with their arguments: norms, rotation, activation.
#include "convergence/kernels.h"
#include "convergence/model.h"
#include "convergence/require.h"

namespace tigon::convergence {

// ------------------------------------------------------------------------------------------ norms

template <class P>
rms_norm::Forward<P> Model<P>::rms_args(const Elem* x, const Elem* w, Elem* y, float* rstd) const {
  rms_norm::Forward<P> args;
  args.x = view(x, tokens(), hidden());
  args.w = view(w, hidden());
  args.y = view(y, tokens(), hidden());
  args.rstd = view(rstd, tokens());
  args.eps = config_.norm_eps;
  args.offset = config_.norm_offset;
  if (config_.norm_offset != 0.0f) args.casting = rms_norm::Casting::kGemma;
  return args;
}

template <class P>
rms_norm::Backward<P> Model<P>::rms_gradient_args(const Buffers& b, const Elem* dy, const Elem* x,
                                                  const Elem* w, const float* rstd,
                                                  Elem* dx) const {
  rms_norm::Backward<P> args;
  args.dy = view(dy, tokens(), hidden());
  args.x = view(x, tokens(), hidden());
  args.w = view(w, hidden());
  args.rstd = view(rstd, tokens());
  args.dx = view(dx, tokens(), hidden());
  args.dw = view(b.dnorm, hidden());
  args.scratch = b.norm_scratch;
  args.offset = config_.norm_offset;
  return args;
}

template <class P>
layer_norm::Forward<P> Model<P>::layer_norm_args(const Elem* x, const NormOffsets& w, Elem* y,
                                                 const NormStatistics& s) const {
  layer_norm::Forward<P> args;
  args.x = view(x, tokens(), hidden());
  args.w = view(weight(w.weight), hidden());
  args.b = view(weight(w.bias), hidden());
  args.y = view(y, tokens(), hidden());
  args.mean = view(s.mean, tokens());
  args.rstd = view(s.rstd, tokens());
  args.eps = config_.norm_eps;
  return args;
}

template <class P>
layer_norm::Backward<P> Model<P>::layer_norm_gradient_args(const Buffers& b, const Elem* dy,
                                                           const Elem* x, const NormOffsets& w,
                                                           const NormStatistics& s,
                                                           Elem* dx) const {
  layer_norm::Backward<P> args;
  const Elem* const scale = b.weight + w.weight;
  const float *const mean = s.mean, *const rstd = s.rstd;
  args.dy = view(dy, tokens(), hidden());
  args.x = view(x, tokens(), hidden());
  args.w = view(scale, hidden());
  args.mean = view(mean, tokens());
  args.rstd = view(rstd, tokens());
  args.dx = view(dx, tokens(), hidden());
  args.dw = view(b.dnorm, hidden());
  args.db = view(b.dnorm + hidden(), hidden());
  args.scratch = b.norm_scratch;
  return args;
}

template <class P>
void Model<P>::norm(const Elem* x, const NormOffsets& w, Elem* y, const NormStatistics& s) {
  const PartRange range = part(Part::kNorms);
  if (config_.norm == NormKind::kRmsNorm)
    require(ops_.run(rms_args(x, weight(w.weight), y, s.rstd), stream_), "rms_norm forward");
  else
    require(ops_.run(layer_norm_args(x, w, y, s), stream_), "layer_norm forward");
}

template <class P>
void Model<P>::norm_backward(Elem* dy, const Elem* x, const NormOffsets& w, const NormStatistics& s,
                             Elem* dx) {
  const PartRange range = part(Part::kNorms);
  if (config_.norm == NormKind::kRmsNorm) {
    require(ops_.run(rms_gradient_args(b_, dy, x, weight(w.weight), s.rstd, dx), stream_),
            "rms_norm backward");
  } else {
    require(ops_.run(layer_norm_gradient_args(b_, dy, x, w, s, dx), stream_),
            "layer_norm backward");
    require(round_to(b_.dnorm + hidden(), gradient(w.bias), hidden(), stream_),
            "rounding of a norm gradient");
  }
  require(round_to(b_.dnorm, gradient(w.weight), hidden(), stream_), "rounding of a norm gradient");
}

// ----------------------------------------------------------------------------- norms of q and of k

template <class P>
View<typename P::Elem, 2> Model<P>::head_rows(Elem* qkv, int head) const {
  return {qkv + int64_t{head} * config_.head_size,
          {tokens(), config_.head_size},
          {config_.qkv_size(), 1}};
}

// `layer` has the activations, whose weight begins at `w`.
template <class P>
rms_norm::Backward<P> Model<P>::head_gradient_args(const Buffers& b, int layer, int head,
                                                   int64_t w) const {
  const LayerBuffers& l = b.layers[static_cast<size_t>(layer)];
  const View<Elem, 2> dy = head_rows(b.dqkv, head), x = head_rows(l.raw_qkv, head);
  const Elem* const scale = b.weight + w;
  const float* const rstd = l.head_rstd + head * tokens();
  rms_norm::Backward<P> args;
  args.dy = {dy.data, {dy.shape[0], dy.shape[1]}, {dy.stride[0], 1}};
  args.x = {x.data, {x.shape[0], x.shape[1]}, {x.stride[0], 1}};
  args.w = view(scale, config_.head_size);
  args.rstd = view(rstd, tokens());
  args.dx = dy;
  args.dw = view(b.head_dnorm + int64_t{head} * config_.head_size, config_.head_size);
  args.scratch = b.norm_scratch;
  args.offset = config_.norm_offset;
  return args;
}

template <class P>
void Model<P>::head_norms(const LayerBuffers& b, const ParameterLayout::Block& w) {
  const PartRange range = part(Part::kNorms);
  device_copy(b.raw_qkv, b.qkv, static_cast<size_t>(tokens() * config_.qkv_size()) * sizeof(Elem),
              stream_);
  for (int head = 0; head < config_.heads + config_.kv_heads; ++head) {
    const View<Elem, 2> x = head_rows(b.raw_qkv, head);
    rms_norm::Forward<P> args;
    args.x = {x.data, {x.shape[0], x.shape[1]}, {x.stride[0], 1}};
    args.w = view(weight(head < config_.heads ? w.q_norm : w.k_norm), config_.head_size);
    args.y = head_rows(b.qkv, head);
    args.rstd = view(b.head_rstd + head * tokens(), tokens());
    args.eps = config_.norm_eps;
    args.offset = config_.norm_offset;
    if (config_.norm_offset != 0.0f) args.casting = rms_norm::Casting::kGemma;
    require(ops_.run(args, stream_), "rms_norm forward of a head");
  }
}

template <class P>
void Model<P>::head_norms_backward(int layer, const ParameterLayout::Block& w) {
  const PartRange range = part(Part::kNorms);
  const int buffers = config_.recompute ? 0 : layer;
  for (int head = 0; head < config_.heads + config_.kv_heads; ++head)
    require(
        ops_.run(head_gradient_args(b_, buffers, head, head < config_.heads ? w.q_norm : w.k_norm),
                 stream_),
        "rms_norm backward of a head");
  const int64_t size = config_.head_size;
  require(sum_rows(b_.head_dnorm, config_.heads, size, gradient(w.q_norm), stream_),
          "sum of norm gradients");
  require(sum_rows(b_.head_dnorm + config_.heads * size, config_.kv_heads, size, gradient(w.k_norm),
                   stream_),
          "sum of norm gradients");
}

// -----------------------------------------------------------------------------------------
// rotation

namespace {

// The heads that begin at `data` in rows of q, k, v.
template <class Elem>
View<Elem, 3> heads_of(Elem* data, int heads, const AttentionShape& s) {
  return {data, {s.tokens(), heads, s.head_size}, {s.row(), s.head_size, 1}};
}

void set_options(rope::Options& options, const ModelConfig& c) {
  options.rotary = c.rotary;
  if (c.rotary_interleaved) options.pairing = rope::Pairing::kInterleaved;
}

}  // namespace

template <class P>
void Model<P>::rotate(Elem* qkv) {
  const PartRange range = part(Part::kRotary);
  const AttentionShape shape = attention_shape();
  const float *const cos = b_.cos, *const sin = b_.sin;
  rope::Forward<P> args;
  set_options(args, config_);
  args.q = heads_of(qkv, config_.heads, shape);
  args.k = heads_of(qkv + shape.q_size(), config_.kv_heads, shape);
  args.cos = view(cos, tokens(), rotary_pairs());
  args.sin = view(sin, tokens(), rotary_pairs());
  require(ops_.run(args, stream_), "rope forward");
}

template <class P>
void Model<P>::rotate_back(Elem* dqkv) {
  const PartRange range = part(Part::kRotary);
  const AttentionShape shape = attention_shape();
  const float *const cos = b_.cos, *const sin = b_.sin;
  rope::Backward<P> args;
  set_options(args, config_);
  args.dq = heads_of(dqkv, config_.heads, shape);
  args.dk = heads_of(dqkv + shape.q_size(), config_.kv_heads, shape);
  args.cos = view(cos, tokens(), rotary_pairs());
  args.sin = view(sin, tokens(), rotary_pairs());
  require(ops_.run(args, stream_), "rope backward");
}

// ---------------------------------------------------------------------------------------
// activation

namespace {

geglu::Approximate approximate_of(const ModelConfig& c) {
  return c.activation == Activation::kGegluTanh ? geglu::Approximate::kTanh
                                                : geglu::Approximate::kNone;
}

}  // namespace

template <class P>
void Model<P>::activate(const LayerBuffers& b) {
  const PartRange range = part(Part::kActivation);
  const auto run = [&](auto args, const char* what) {
    const int64_t n = tokens(), inner = config_.intermediate;
    args.a = {b.gate_up, {n, inner}, {2 * inner, 1}};
    args.b = {b.gate_up + inner, {n, inner}, {2 * inner, 1}};
    args.y = view(b.activated, n, inner);
    require(ops_.run(args, stream_), what);
  };
  if (config_.activation == Activation::kSwiglu) return run(swiglu::Forward<P>{}, "swiglu forward");
  geglu::Forward<P> args;
  args.approximate = approximate_of(config_);
  run(args, "geglu forward");
}

// The gradients take the place of gate and up.
template <class P>
void Model<P>::activate_backward(const LayerBuffers& b) {
  const PartRange range = part(Part::kActivation);
  const auto run = [&](auto args, const char* what) {
    const int64_t n = tokens(), inner = config_.intermediate;
    const Elem *const gate = b.gate_up, *const up = b.gate_up + inner;
    const Elem* const dactivated = b_.dactivated;
    args.dy = view(dactivated, n, inner);
    args.a = {gate, {n, inner}, {2 * inner, 1}};
    args.b = {up, {n, inner}, {2 * inner, 1}};
    args.da = {b.gate_up, {n, inner}, {2 * inner, 1}};
    args.db = {b.gate_up + inner, {n, inner}, {2 * inner, 1}};
    require(ops_.run(args, stream_), what);
  };
  if (config_.activation == Activation::kSwiglu)
    return run(swiglu::Backward<P>{}, "swiglu backward");
  geglu::Backward<P> args;
  args.approximate = approximate_of(config_);
  run(args, "geglu backward");
}

template class Model<F32>;
template class Model<BF16>;

}  // namespace tigon::convergence
