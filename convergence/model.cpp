// Forward and backward of a pre-norm decoder layer by layer:
//   h = x + attention(rope(norm(x) Wqkv)) Wo;   x' = h + swiglu(norm(h) Wgate, norm(h) Wup) Wdown
#include "convergence/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "convergence/converge.h"
#include "convergence/kernels.h"

namespace tigon::convergence {
namespace {

void require(const Status& s, const char* what) {
  if (!s.ok()) throw ConvergeError(5, fmt::format("{} failed: {}", what, s.reason));
}

}  // namespace

// Leaves placeholders in b_.
template <class P>
Model<P>::Model(const ModelConfig& config, const Ops<P>& ops, PlanOnly)
    : config_(config), ops_(ops), layout_(config) {
  b_ = take_buffers(plan_);
}

template <class P>
Model<P>::Model(const ModelConfig& config, const Ops<P>& ops) : Model(config, ops, PlanOnly{}) {
  arena_ = DeviceBuffer(static_cast<size_t>(plan_.place()));
  plan_.resolve(arena_.data());
  b_ = take_buffers(plan_);
  upload_angles();
}

template <class P>
void Model<P>::tune(const ModelConfig& config, const Ops<P>& ops) {
  const Model model(config, ops, PlanOnly{});
  std::vector<Gemm> problems = model.layer_products(model.b_);
  // The unfused head; the fused one has chunks of its own size.
  for (const Gemm& g : model.products_of(config.vocabulary, config.hidden, model.b_))
    problems.push_back(g);
  for (const Gemm& g : problems) require(gemm_tune(g), "choice of a matrix product");
  require(ops.loss_tune(model.loss_gradient_args(model.b_)), "choice of a matrix product");
}

template <class P>
int64_t Model<P>::plan_bytes(const ModelConfig& config, const Ops<P>& ops) {
  return Model(config, ops, PlanOnly{}).plan_.place();
}

// ---------------------------------------------------------------------------------------- memory

template <class P>
typename Model<P>::LayerBuffers Model<P>::take_layer(MemoryPlan& plan, int l) const {
  const int first = l, last = backward_phase(l);
  const auto floats = [&](int64_t n) { return plan.take<float>(n, first, last); };
  const auto elements = [&](int64_t n) { return plan.take<Elem>(tokens() * n, first, last); };
  LayerBuffers b{};
  b.rstd1 = floats(tokens());
  b.rstd2 = floats(tokens());
  b.lse = floats(tokens() * config_.heads);
  b.normed1 = elements(hidden());
  b.qkv = elements(config_.qkv_size());
  b.attention = elements(config_.q_size());
  b.middle = elements(hidden());
  b.normed2 = elements(hidden());
  b.gate_up = elements(int64_t{2} * config_.intermediate);
  b.activated = elements(config_.intermediate);
  return b;
}

template <class P>
typename Model<P>::Buffers Model<P>::take_buffers(MemoryPlan& plan) const {
  const int always = 0, loss = loss_phase(), end = update_phase();
  const int first_backward = loss + 1, last_backward = backward_phase(0);
  const int64_t n = tokens(), parameters = layout_.total;
  Buffers b{};
  b.weight = plan.take<Elem>(parameters, always, end);
  b.gradient = plan.take<Elem>(parameters, always, end);
  if constexpr (std::is_same_v<Elem, float>)
    b.master = b.weight;
  else
    b.master = plan.take<float>(parameters, always, end);
  b.m = plan.take<float>(parameters, always, end);
  b.v = plan.take<float>(parameters, always, end);
  b.input = plan.take<int64_t>(n, always, end);
  b.target = plan.take<int64_t>(n, always, end);
  b.order = plan.take<int32_t>(n, always, end);
  b.first = plan.take<int32_t>(n + 1, always, end);
  b.cos = plan.take<float>(n * config_.head_size / 2, always, end);
  b.sin = plan.take<float>(n * config_.head_size / 2, always, end);
  b.loss = plan.take<float>(1, always, end);
  b.square = plan.take<float>(1, always, end);
  b.partial = plan.take<float>(kNormPartials, end, end);
  for (int l = 0; l < config_.layers; ++l) {
    b.x.push_back(plan.take<Elem>(n * hidden(), std::max(l - 1, 0), backward_phase(l)));
    b.layers.push_back(take_layer(plan, l));
  }
  b.x.push_back(plan.take<Elem>(n * hidden(), last_layer(), loss));
  b.branch = plan.take<Elem>(n * hidden(), always, last_layer());
  b.rstd = plan.take<float>(n, loss, loss);
  b.row_lse = plan.take<float>(n, loss, loss);
  b.normed = plan.take<Elem>(n * hidden(), loss, loss);
  b.dnormed = plan.take<Elem>(n * hidden(), loss, loss);
  b.dx = plan.take<Elem>(n * hidden(), loss, end);
  b.dnorm = plan.take<float>(hidden(), loss, last_backward);
  b.dbranch =
      plan.take<Elem>(n * std::max(hidden(), config_.q_size()), first_backward, last_backward);
  b.dactivated = plan.take<Elem>(n * config_.intermediate, first_backward, last_backward);
  b.dqkv = plan.take<Elem>(n * config_.qkv_size(), first_backward, last_backward);
  b.delta = plan.take<float>(n * config_.heads, first_backward, last_backward);
  take_scratch(plan, b);
  return b;
}

template <class P>
void Model<P>::take_scratch(MemoryPlan& plan, Buffers& b) const {
  const auto take = [&](size_t bytes, int first, int last) {
    return Scratch{plan.take<char>(static_cast<int64_t>(bytes), first, last), bytes};
  };
  size_t gemm_bytes = 0;
  for (const Gemm& g : layer_products(b)) gemm_bytes = std::max(gemm_bytes, gemm_workspace(g));
  const auto norm = norm_gradient_args(b, b.dx, b.dx, b.weight, b.rstd, b.dx);
  b.gemm_scratch = take(gemm_bytes, 0, backward_phase(0));
  b.norm_scratch = take(ops_.rms_norm_workspace(norm), loss_phase(), backward_phase(0));
  b.loss_scratch = take(std::max(ops_.loss_workspace(loss_args(b)),
                                 ops_.loss_gradient_workspace(loss_gradient_args(b))),
                        loss_phase(), loss_phase());
}

template <class P>
void Model<P>::upload_angles() {
  const int half = config_.head_size / 2;
  std::vector<float> cosines, sines;
  for (int64_t i = 0; i < tokens(); ++i)
    for (int j = 0; j < half; ++j) {
      const double place = static_cast<double>(i % config_.sequence);
      const double angle = place * std::pow(config_.rope_theta, -static_cast<double>(j) / half);
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  device_upload(b_.cos, cosines.data(), cosines.size() * sizeof(float), stream_);
  device_upload(b_.sin, sines.data(), sines.size() * sizeof(float), stream_);
}

template <class P>
void Model<P>::set_weights(const std::vector<float>& master) {
  const size_t bytes = static_cast<size_t>(layout_.total) * sizeof(float);
  device_upload(b_.master, master.data(), bytes, stream_);
  device_fill(b_.m, 0, bytes, stream_);
  device_fill(b_.v, 0, bytes, stream_);
  device_fill(b_.gradient, 0, static_cast<size_t>(layout_.total) * sizeof(Elem), stream_);
  if constexpr (!std::is_same_v<Elem, float>)
    require(round_to(b_.master, b_.weight, layout_.total, stream_), "rounding of weights");
}

template <class P>
std::vector<float> Model<P>::weights() const {
  std::vector<float> host(static_cast<size_t>(layout_.total));
  device_download(host.data(), b_.master, host.size() * sizeof(float), stream_);
  return host;
}

template <class P>
std::vector<float> Model<P>::gradients() const {
  std::vector<Elem> host(static_cast<size_t>(layout_.total));
  device_download(host.data(), b_.gradient, host.size() * sizeof(Elem), stream_);
  std::vector<float> gradient;
  for (Elem g : host) gradient.push_back(static_cast<float>(g));
  return gradient;
}

template <class P>
std::vector<StateTensor> Model<P>::state() const {
  std::vector<StateTensor> all;
  const auto add_all = [&](const char* kind, auto* data) {
    for (const Parameter& p : layout_.parameters)
      all.push_back({fmt::format("{}.{}", kind, p.name), dtype_of<std::decay_t<decltype(*data)>>,
                     p.rows, p.columns, data + p.offset});
  };
  add_all("weight", b_.weight);
  if constexpr (!std::is_same_v<Elem, float>) add_all("master", b_.master);
  add_all("adam_m", b_.m);
  add_all("adam_v", b_.v);
  return all;
}

template <class P>
void Model<P>::upload(const Batch& batch) {
  const auto send = [&](auto* to, const auto& from) {
    device_upload(to, from.data(), from.size() * sizeof(from[0]), stream_);
  };
  send(b_.input, batch.input);
  send(b_.target, batch.target);
  send(b_.order, batch.order);
  send(b_.first, batch.first);
}

// --------------------------------------------------------------------------------------- matrices

template <class P>
Gemm Model<P>::product(int64_t out, int64_t in, const Elem* x, const Elem* w, Elem* y) const {
  Gemm g{.m = tokens(), .n = out, .k = in, .a = x, .b = w, .c = y};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = g.ldb = in;
  g.ldc = out;
  g.transpose_b = true;
  return g;
}

template <class P>
Gemm Model<P>::input_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* w,
                              Elem* dx) const {
  Gemm g{.m = tokens(), .n = in, .k = out, .a = dy, .b = w, .c = dx};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = out;
  g.ldb = g.ldc = in;
  return g;
}

template <class P>
Gemm Model<P>::weight_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* x,
                               Elem* dw) const {
  Gemm g{.m = out, .n = in, .k = tokens(), .a = dy, .b = x, .c = dw};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = out;
  g.ldb = g.ldc = in;
  g.transpose_a = true;
  return g;
}

// Forward and both gradients of a matrix; the pointers stand for others as well aligned.
template <class P>
std::vector<Gemm> Model<P>::products_of(int64_t out, int64_t in, const Buffers& b) const {
  return {product(out, in, b.branch, b.weight, b.branch),
          input_gradient(out, in, b.branch, b.weight, b.branch),
          weight_gradient(out, in, b.branch, b.branch, b.weight)};
}

template <class P>
std::vector<Gemm> Model<P>::layer_products(const Buffers& b) const {
  const int64_t inner = config_.intermediate;
  const std::pair<int64_t, int64_t> matrices[] = {{config_.qkv_size(), hidden()},
                                                  {hidden(), config_.q_size()},
                                                  {2 * inner, hidden()},
                                                  {hidden(), inner}};
  std::vector<Gemm> all;
  for (const auto& [out, in] : matrices)
    for (const Gemm& g : products_of(out, in, b)) all.push_back(g);
  return all;
}

template <class P>
void Model<P>::multiply(const Gemm& problem) {
  require(gemm(problem, b_.gemm_scratch, stream_), "matrix product");
}

template <class P>
void Model<P>::linear_backward(int64_t out, int64_t in, const Elem* dy, const Elem* x, int64_t w,
                               Elem* dx) {
  multiply(weight_gradient(out, in, dy, x, gradient(w)));
  multiply(input_gradient(out, in, dy, weight(w), dx));
}

// ---------------------------------------------------------------------------- arguments of the ops

template <class P>
rms_norm::Forward<P> Model<P>::norm_args(const Elem* x, const Elem* w, Elem* y, float* rstd) const {
  rms_norm::Forward<P> args;
  args.x = view(x, tokens(), hidden());
  args.w = view(w, hidden());
  args.y = view(y, tokens(), hidden());
  args.rstd = view(rstd, tokens());
  args.eps = config_.norm_eps;
  return args;
}

template <class P>
rms_norm::Backward<P> Model<P>::norm_gradient_args(const Buffers& b, const Elem* dy, const Elem* x,
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
  return args;
}

template <class P>
void Model<P>::norm_backward(Elem* dy, const Elem* x, int64_t w, const float* rstd, Elem* dx) {
  require(ops_.rms_norm_backward(norm_gradient_args(b_, dy, x, weight(w), rstd, dx), stream_),
          "rms_norm backward");
  require(round_to(b_.dnorm, gradient(w), hidden(), stream_), "rounding of a norm gradient");
}

template <class P>
linear_cross_entropy::Forward<P> Model<P>::loss_args(const Buffers& b) const {
  linear_cross_entropy::Forward<P> args;
  const Elem* const x = b.normed;
  const Elem* const w = b.weight + layout_.head;
  const int64_t* const target = b.target;
  args.x = view(x, tokens(), hidden());
  args.w = view(w, config_.vocabulary, hidden());
  args.target = view(target, tokens());
  args.loss = view(b.loss, 1);
  args.lse = view(b.row_lse, tokens());
  args.logits_bytes = config_.logits_bytes;
  args.scratch = b.loss_scratch;
  return args;
}

template <class P>
linear_cross_entropy::ForwardBackward<P> Model<P>::loss_gradient_args(const Buffers& b) const {
  const linear_cross_entropy::Forward<P> forward = loss_args(b);
  linear_cross_entropy::ForwardBackward<P> args;
  args.x = forward.x;
  args.w = forward.w;
  args.target = forward.target;
  args.loss = forward.loss;
  args.lse = forward.lse;
  args.logits_bytes = forward.logits_bytes;
  args.scratch = forward.scratch;
  args.dx = view(b.dnormed, tokens(), hidden());
  args.dw = view(b.gradient + layout_.head, config_.vocabulary, hidden());
  return args;
}

template <class P>
AttentionShape Model<P>::attention_shape() const {
  return {config_.batch, config_.sequence, config_.heads, config_.kv_heads, config_.head_size};
}

// The heads that begin at `data` in rows of q, k, v.
template <class Elem>
View<Elem, 3> heads_of(Elem* data, int heads, const AttentionShape& s) {
  return {data, {s.tokens(), heads, s.head_size}, {s.row(), s.head_size, 1}};
}

// ---------------------------------------------------------------------------------------- forward

template <class P>
void Model<P>::forward_layer(int l) {
  const LayerBuffers& b = b_.layers[static_cast<size_t>(l)];
  const ParameterLayout::Block& w = layout_.blocks[static_cast<size_t>(l)];
  Elem* const x = b_.x[static_cast<size_t>(l)];
  Elem* const next = b_.x[static_cast<size_t>(l) + 1];
  const AttentionShape shape = attention_shape();
  const int64_t size = tokens() * hidden(), inner = config_.intermediate;
  const float *const cos = b_.cos, *const sin = b_.sin;

  require(ops_.rms_norm_forward(norm_args(x, weight(w.norm1), b.normed1, b.rstd1), stream_),
          "rms_norm forward");
  multiply(product(config_.qkv_size(), hidden(), b.normed1, weight(w.qkv), b.qkv));
  rope::Forward<P> rotate;
  rotate.q = heads_of(b.qkv, config_.heads, shape);
  rotate.k = heads_of(b.qkv + shape.q_size(), config_.kv_heads, shape);
  rotate.cos = view(cos, tokens(), config_.head_size / 2);
  rotate.sin = view(sin, tokens(), config_.head_size / 2);
  require(ops_.rope_forward(rotate, stream_), "rope forward");
  require(attention_forward(AttentionForward<P>{shape, b.qkv, b.attention, b.lse}, stream_),
          "attention forward");
  multiply(product(hidden(), config_.q_size(), b.attention, weight(w.o), b_.branch));
  require(add(x, b_.branch, b.middle, size, stream_), "residual add");

  require(ops_.rms_norm_forward(norm_args(b.middle, weight(w.norm2), b.normed2, b.rstd2), stream_),
          "rms_norm forward");
  multiply(product(2 * inner, hidden(), b.normed2, weight(w.gate_up), b.gate_up));
  swiglu::Forward<P> gate;
  gate.a = {b.gate_up, {tokens(), inner}, {2 * inner, 1}};
  gate.b = {b.gate_up + inner, {tokens(), inner}, {2 * inner, 1}};
  gate.y = view(b.activated, tokens(), inner);
  require(ops_.swiglu_forward(gate, stream_), "swiglu forward");
  multiply(product(hidden(), inner, b.activated, weight(w.down), b_.branch));
  require(add(b.middle, b_.branch, next, size, stream_), "residual add");
}

template <class P>
void Model<P>::forward() {
  require(
      gather_rows(weight(layout_.embedding), b_.input, b_.x.front(), tokens(), hidden(), stream_),
      "embedding");
  for (int l = 0; l < config_.layers; ++l) forward_layer(l);
  require(ops_.rms_norm_forward(
              norm_args(b_.x.back(), weight(layout_.final_norm), b_.normed, b_.rstd), stream_),
          "rms_norm forward");
}

// --------------------------------------------------------------------------------------- backward

template <class P>
void Model<P>::loss_and_head_gradient() {
  require(ops_.loss_forward_backward(loss_gradient_args(b_), stream_),
          "linear_cross_entropy forward_backward");
  norm_backward(b_.dnormed, b_.x.back(), layout_.final_norm, b_.rstd, b_.dx);
}

// dx holds the gradient of the layer's output, then that of its input.
template <class P>
void Model<P>::backward_layer(int l) {
  const LayerBuffers& b = b_.layers[static_cast<size_t>(l)];
  const ParameterLayout::Block& w = layout_.blocks[static_cast<size_t>(l)];
  const AttentionShape shape = attention_shape();
  const int64_t size = tokens() * hidden(), inner = config_.intermediate;
  const float *const cos = b_.cos, *const sin = b_.sin;

  linear_backward(hidden(), inner, b_.dx, b.activated, w.down, b_.dactivated);
  swiglu::Backward<P> gate;
  const Elem *const gate_half = b.gate_up, *const up_half = b.gate_up + inner;
  const Elem* const dactivated = b_.dactivated;
  gate.dy = view(dactivated, tokens(), inner);
  gate.a = {gate_half, {tokens(), inner}, {2 * inner, 1}};
  gate.b = {up_half, {tokens(), inner}, {2 * inner, 1}};
  gate.da = {b.gate_up, {tokens(), inner}, {2 * inner, 1}};
  gate.db = {b.gate_up + inner, {tokens(), inner}, {2 * inner, 1}};
  require(ops_.swiglu_backward(gate, stream_), "swiglu backward");
  linear_backward(2 * inner, hidden(), b.gate_up, b.normed2, w.gate_up, b_.dbranch);
  norm_backward(b_.dbranch, b.middle, w.norm2, b.rstd2, b_.dbranch);
  require(add(b_.dx, b_.dbranch, b_.dx, size, stream_), "residual add");

  linear_backward(hidden(), config_.q_size(), b_.dx, b.attention, w.o, b_.dbranch);
  require(attention_backward(
              AttentionBackward<P>{shape, b.qkv, b.attention, b_.dbranch, b.lse, b_.dqkv, b_.delta},
              stream_),
          "attention backward");
  rope::Backward<P> rotate;
  rotate.dq = heads_of(b_.dqkv, config_.heads, shape);
  rotate.dk = heads_of(b_.dqkv + shape.q_size(), config_.kv_heads, shape);
  rotate.cos = view(cos, tokens(), config_.head_size / 2);
  rotate.sin = view(sin, tokens(), config_.head_size / 2);
  require(ops_.rope_backward(rotate, stream_), "rope backward");
  linear_backward(config_.qkv_size(), hidden(), b_.dqkv, b.normed1, w.qkv, b_.dbranch);
  norm_backward(b_.dbranch, b_.x[static_cast<size_t>(l)], w.norm1, b.rstd1, b_.dbranch);
  require(add(b_.dx, b_.dbranch, b_.dx, size, stream_), "residual add");
}

template <class P>
void Model<P>::backward() {
  for (int l = last_layer(); l >= 0; --l) backward_layer(l);
  // A tied table already holds the head's gradient; rows of tokens that do not occur keep it.
  if (!config_.tied)
    device_fill(gradient(layout_.embedding), 0,
                static_cast<size_t>(config_.vocabulary * hidden()) * sizeof(Elem), stream_);
  const ScatterRows<Elem> scatter{
      b_.dx, b_.input, b_.order, b_.first, gradient(layout_.embedding), tokens(), hidden()};
  require(scatter_rows(scatter, stream_), "embedding gradient");
}

template <class P>
void Model<P>::update(const UpdateSettings& settings) {
  require(sum_of_squares(b_.gradient, layout_.total, b_.partial, b_.square, stream_),
          "gradient norm");
  const auto f = [](double x) { return static_cast<float>(x); };
  const auto t = static_cast<double>(settings.step + 1);
  AdamW<Elem> a{};
  a.weight = b_.weight;
  a.master = b_.master;
  a.m = b_.m;
  a.v = b_.v;
  a.gradient = b_.gradient;
  a.n = layout_.total;
  a.decayed = layout_.decayed;
  a.square_norm = b_.square;
  a.clip = f(config_.clip);
  a.rate = f(settings.rate);
  a.beta1 = f(config_.beta1);
  a.beta2 = f(config_.beta2);
  a.eps = f(config_.adam_eps);
  a.weight_decay = f(config_.weight_decay);
  a.correction1 = f(1.0 / (1.0 - std::pow(config_.beta1, t)));
  a.correction2 = f(1.0 / (1.0 - std::pow(config_.beta2, t)));
  require(adamw(a, stream_), "AdamW");
}

template <class P>
StepResult Model<P>::step(const Batch& batch, const UpdateSettings& settings) {
  upload(batch);
  forward();
  loss_and_head_gradient();
  backward();
  update(settings);
  float loss = 0, square = 0;
  device_download(&loss, b_.loss, sizeof loss, stream_);
  device_download(&square, b_.square, sizeof square, stream_);
  return {loss, std::sqrt(static_cast<double>(square))};
}

template <class P>
double Model<P>::evaluate(const Batch& batch) {
  upload(batch);
  forward();
  require(ops_.loss_forward(loss_args(b_), stream_), "linear_cross_entropy forward");
  float loss = 0;
  device_download(&loss, b_.loss, sizeof loss, stream_);
  return loss;
}

template <class P>
std::vector<float> Model<P>::hidden_states(const Batch& batch) {
  upload(batch);
  forward();
  std::vector<Elem> host(static_cast<size_t>(tokens() * hidden()));
  device_download(host.data(), b_.normed, host.size() * sizeof(Elem), stream_);
  return std::vector<float>(host.begin(), host.end());
}

template class Model<F32>;
template class Model<BF16>;

}  // namespace tigon::convergence
