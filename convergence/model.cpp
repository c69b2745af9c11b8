// A model's memory and weights, and its training step.
#include "convergence/model.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <type_traits>

#include "convergence/kernels.h"
#include "convergence/require.h"
#include "convergence/threads.h"

namespace tigon::convergence {
namespace {

// Why steps are not captured; empty when they are.
std::string refusal_of_graphs(const ModelConfig& config) {
  return config.graph ? "" : "--no-graph";
}

}  // namespace

// Leaves placeholders in b_.
template <class P>
Model<P>::Model(const ModelConfig& config, const Ops<P>& ops, PlanOnly)
    : config_(config), ops_(ops), layout_(config), graphs_(refusal_of_graphs(config)) {
  b_ = take_buffers(plan_);
}

template <class P>
const ModelConfig& Model<P>::with_attention_prepared(const ModelConfig& config) {
  attention_prepare(attention_shape(config), dtype_of<Elem>);
  return config;
}

template <class P>
std::string Model<P>::attention_of(const ModelConfig& config) {
  return attention_plan(attention_shape(config), dtype_of<Elem>).by;
}

template <class P>
Model<P>::Model(const ModelConfig& config, const Ops<P>& ops)
    : Model(with_attention_prepared(config), ops, PlanOnly{}) {
  stream_ = own_stream_.emplace();
  arena_ = DeviceBuffer(static_cast<size_t>(plan_.place()));
  plan_.resolve(arena_.data());
  b_ = take_buffers(plan_);
  upload_angles();
  upload_medusa_scales();
}

template <class P>
void Model<P>::tune(const ModelConfig& config, const Ops<P>& ops) {
  const Model model(config, ops, PlanOnly{});
  std::vector<Gemm> problems = model.layer_products(model.b_);
  // The unfused head; the fused one has chunks of its own size.
  for (const Gemm& g : model.products_of(config.vocabulary, config.hidden, model.b_))
    problems.push_back(g);
  for (const Gemm& g : problems) require(gemm_tune(g), "choice of a matrix product");
  require(ops.prepare(model.loss_gradient_args(model.b_, model.first_head())),
          "choice of a matrix product");
}

template <class P>
ArenaPlan Model<P>::plan_arena(const ModelConfig& config, const Ops<P>& ops) {
  Model model(config, ops, PlanOnly{});
  const int64_t bytes = model.plan_.place();
  return {bytes, model.plan_.in_use(), model.loss_phase()};
}

template <class P>
void Model<P>::upload_angles() {
  const auto half = static_cast<int>(rotary_pairs());
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

// What is not trained has no master weight.
template <class P>
void Model<P>::set_weights(const std::vector<float>& master) {
  const auto trained = static_cast<size_t>(layout_.trained);
  const size_t bytes = trained * sizeof(float);
  device_fill(b_.m, 0, bytes, stream_);
  device_fill(b_.v, 0, bytes, stream_);
  device_fill(b_.gradient, 0, trained * sizeof(Elem), stream_);
  if constexpr (std::is_same_v<Elem, float>) {
    device_upload(b_.weight, master.data(), master.size() * sizeof(float), stream_);
  } else {
    device_upload(b_.master, master.data(), bytes, stream_);
    std::vector<Elem> rounded(master.size());
    parallel_for_each(0, static_cast<int64_t>(master.size()), [&](int64_t i) {
      rounded[static_cast<size_t>(i)] = Elem(master[static_cast<size_t>(i)]);
    });
    device_upload(b_.weight, rounded.data(), rounded.size() * sizeof(Elem), stream_);
  }
}

template <class P>
std::vector<float> Model<P>::weights() const {
  std::vector<Elem> all(static_cast<size_t>(layout_.total));
  device_download(all.data(), b_.weight, all.size() * sizeof(Elem), stream_);
  std::vector<float> host;
  for (Elem w : all) host.push_back(static_cast<float>(w));
  device_download(host.data(), b_.master, static_cast<size_t>(layout_.trained) * sizeof(float),
                  stream_);
  return host;
}

template <class P>
std::vector<float> Model<P>::gradients() const {
  std::vector<Elem> host(static_cast<size_t>(layout_.trained));
  device_download(host.data(), b_.gradient, host.size() * sizeof(Elem), stream_);
  std::vector<float> gradient;
  for (Elem g : host) gradient.push_back(static_cast<float>(g));
  gradient.resize(static_cast<size_t>(layout_.total), 0.0f);
  return gradient;
}

template <class P>
std::vector<StateTensor> Model<P>::state() const {
  std::vector<StateTensor> all;
  const auto add_all = [&](const char* kind, auto* data) {
    for (const Parameter& p : layout_.parameters) {
      if (p.offset >= layout_.trained && data != static_cast<void*>(b_.weight)) break;
      all.push_back({fmt::format("{}.{}", kind, p.name), dtype_of<std::decay_t<decltype(*data)>>,
                     p.rows, p.columns, data + p.offset});
    }
  };
  add_all("weight", b_.weight);
  if constexpr (!std::is_same_v<Elem, float>) add_all("master", b_.master);
  add_all("adam_m", b_.m);
  add_all("adam_v", b_.v);
  return all;
}

template <class P>
void Model<P>::upload(const Batch& batch) {
  const PartRange range = part(Part::kOther);
  const auto send = [&](auto* to, const auto& from) {
    device_upload(to, from.data(), from.size() * sizeof(from[0]), stream_);
  };
  send(b_.input, batch.input);
  send(b_.target, batch.target);
  send(b_.order, batch.order);
  send(b_.first, batch.first);
  upload_medusa_targets(batch);
}

template <class P>
void Model<P>::upload_schedule(const UpdateSettings& settings) {
  const PartRange range = part(Part::kOptimizer);
  const auto f = [](double x) { return static_cast<float>(x); };
  const auto t = static_cast<double>(settings.step + 1);
  const float correction1 = f(1.0 / (1.0 - std::pow(config_.beta1, t)));
  const float correction2 = f(1.0 / (1.0 - std::pow(config_.beta2, t)));
  const float schedule[2 * kSchedule] = {f(settings.rate), correction1,
                                         correction2,      f(settings.rate * config_.table_rate),
                                         correction1,      correction2};
  device_upload(b_.schedule, schedule, sizeof schedule, stream_);
}

template <class P>
void Model<P>::update() {
  enter(update_phase());
  const PartRange range = part(Part::kOptimizer);
  require(sum_of_squares(b_.gradient, layout_.trained, b_.partial, b_.square, stream_),
          "gradient norm");
  const auto f = [](double x) { return static_cast<float>(x); };
  AdamW<Elem> a{};
  a.square_norm = b_.square;
  a.clip = f(config_.clip);
  a.beta1 = f(config_.beta1);
  a.beta2 = f(config_.beta2);
  a.eps = f(config_.adam_eps);
  a.weight_decay = f(config_.weight_decay);
  const float *const common = b_.schedule, *const of_tables = b_.schedule + kSchedule;
  const auto update_range = [&](int64_t first, int64_t last, const float* schedule) {
    a.weight = b_.weight + first;
    a.master = b_.master + first;
    a.m = b_.m + first;
    a.v = b_.v + first;
    a.gradient = b_.gradient + first;
    a.n = last - first;
    a.decayed = layout_.decayed - first;
    a.schedule = schedule;
    require(adamw(a, stream_), "AdamW");
  };
  // In as few launches as there are rates.
  if (config_.table_rate == 1.0 || config_.frozen) return update_range(0, layout_.trained, common);
  const int64_t tables = layout_.blocks.front().qkv;
  if (layout_.embedding > 0) update_range(0, layout_.embedding, common);
  update_range(layout_.embedding, tables, of_tables);
  update_range(tables, layout_.trained, common);
}

template <class P>
void Model<P>::accumulate_gradients(bool first, bool last) {
  const PartRange range = part(Part::kOptimizer);
  const auto share = 1.0f / static_cast<float>(config_.accumulate);
  require(accumulate(b_.gradient, share, first, b_.accumulated, layout_.trained, stream_),
          "accumulation of gradients");
  if (last)
    require(round_to(b_.accumulated, b_.gradient, layout_.trained, stream_),
            "rounding of gradients");
}

template <class P>
void Model<P>::launch_pass(bool first, bool last) {
  forward();
  loss_and_head_gradient();
  if (!config_.frozen) backward();
  if (config_.accumulate > 1) accumulate_gradients(first, last);
  if (last) update();
}

template <class P>
void Model<P>::run_pass(bool first, bool last) {
  if (meter_ != nullptr) return launch_pass(first, last);
  graphs_.run(2 * first + last, stream_, [this, first, last] { launch_pass(first, last); });
}

template <class P>
StepResult Model<P>::run_step(const std::vector<Batch>& batches, const UpdateSettings& settings) {
  upload_schedule(settings);
  double loss = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    upload(batches[i]);
    run_pass(i == 0, i + 1 == batches.size());
    loss += total_loss();
  }
  const PartRange range = part(Part::kOther);
  float square = 0;
  device_download(&square, b_.square, sizeof square, stream_);
  return {loss / static_cast<double>(batches.size()), std::sqrt(static_cast<double>(square))};
}

template <class P>
std::string Model<P>::launches() const {
  return device_info().kind == "cuda" ? graphs_.how() : "host executor";
}

template <class P>
StepResult Model<P>::step(const std::vector<Batch>& batches, const UpdateSettings& settings,
                          PartMeter* meter) {
  if (meter == nullptr) return run_step(batches, settings);
  graphs_.release();
  const auto forget = [this](PartMeter*) { meter_ = nullptr; };
  const std::unique_ptr<PartMeter, decltype(forget)> metered(meter_ = meter, forget);
  products_.clear();
  meter->begin_step(stream_);
  const StepResult result = run_step(batches, settings);
  meter->end_step();
  return result;
}

template <class P>
std::vector<float> Model<P>::hidden_states(const Batch& batch) {
  graphs_.release();
  upload(batch);
  forward();
  std::vector<Elem> host(static_cast<size_t>(tokens() * hidden()));
  device_download(host.data(), b_.normed, host.size() * sizeof(Elem), stream_);
  return std::vector<float>(host.begin(), host.end());
}

template class Model<F32>;
template class Model<BF16>;

}  // namespace tigon::convergence
