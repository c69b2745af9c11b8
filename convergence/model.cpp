// SPDX-License-Identifier: Apache-2.0
// A model's memory and its training step.
#include "convergence/model.h"

#include <cmath>
#include <memory>

#include "convergence/model_memory.h"

namespace tigon::convergence {
namespace {

// Why steps are not captured; empty when they are.
std::string refusal_of_graphs(const ModelConfig& config) {
  return config.graph ? "" : "--no-graph";
}

}  // namespace

template <class P>
Model<P>::Model(const ModelConfig& config, const Ops<P>& ops, PlanOnly)
    : c_(config, ops), graphs_(refusal_of_graphs(config)) {
  BufferPlanner<P>(c_, plan_).take_all();
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
  c_.stream = own_stream_.emplace();
  arena_ = DeviceBuffer(static_cast<size_t>(plan_.place()));
  plan_.resolve(arena_.data());
  BufferPlanner<P>(c_, plan_).take_all();
  upload_angles();
  losses_.upload_scales();
}

template <class P>
void Model<P>::tune(const ModelConfig& config, const Ops<P>& ops) {
  Model model(config, ops, PlanOnly{});
  ModelProducts<P>(model.c_).tune();
  model.losses_.tune();
}

template <class P>
ArenaPlan Model<P>::plan_arena(const ModelConfig& config, const Ops<P>& ops) {
  Model model(config, ops, PlanOnly{});
  const int64_t bytes = model.plan_.place();
  return {bytes, model.plan_.in_use(), model.c_.phases.loss()};
}

template <class P>
void Model<P>::upload_angles() {
  const auto half = static_cast<int>(c_.rotary_pairs());
  std::vector<float> cosines, sines;
  for (int64_t i = 0; i < c_.tokens(); ++i)
    for (int j = 0; j < half; ++j) {
      const double place = static_cast<double>(i % c_.config.sequence);
      const double angle = place * std::pow(c_.config.rope_theta, -static_cast<double>(j) / half);
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  device_upload(c_.b.cos, cosines.data(), cosines.size() * sizeof(float), c_.stream);
  device_upload(c_.b.sin, sines.data(), sines.size() * sizeof(float), c_.stream);
}

template <class P>
void Model<P>::upload(const Batch& batch) {
  const PartRange range = c_.part(Part::kOther);
  const auto send = [&](auto* to, const auto& from) {
    device_upload(to, from.data(), from.size() * sizeof(from[0]), c_.stream);
  };
  send(c_.b.input, batch.input);
  send(c_.b.target, batch.target);
  send(c_.b.order, batch.order);
  send(c_.b.first, batch.first);
  losses_.upload_targets(batch);
}

template <class P>
void Model<P>::launch_pass(bool first, bool last) {
  layers_.forward();
  losses_.run_with_gradients();
  if (!c_.config.frozen) layers_.backward();
  if (c_.config.accumulate > 1) update_.accumulate_gradients(first, last);
  if (last) update_.update();
}

template <class P>
void Model<P>::run_pass(bool first, bool last) {
  if (c_.meter != nullptr) return launch_pass(first, last);
  graphs_.run(2 * first + last, c_.stream, [this, first, last] { launch_pass(first, last); });
}

template <class P>
StepResult Model<P>::run_step(const std::vector<Batch>& batches, const UpdateSettings& settings) {
  update_.upload_schedule(settings);
  double loss = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    upload(batches[i]);
    run_pass(i == 0, i + 1 == batches.size());
    loss += losses_.total();
  }
  return {loss / static_cast<double>(batches.size()), update_.gradient_norm()};
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
  const auto forget = [this](PartMeter*) { c_.meter = nullptr; };
  const std::unique_ptr<PartMeter, decltype(forget)> metered(c_.meter = meter, forget);
  c_.products.clear();
  meter->begin_step(c_.stream);
  const StepResult result = run_step(batches, settings);
  meter->end_step();
  return result;
}

template <class P>
double Model<P>::evaluate(const Batch& batch) {
  graphs_.release();
  upload(batch);
  layers_.forward();
  losses_.evaluate();
  return losses_.total();
}

template <class P>
std::vector<float> Model<P>::hidden_states(const Batch& batch) {
  graphs_.release();
  upload(batch);
  layers_.forward();
  std::vector<Elem> host(static_cast<size_t>(c_.tokens() * c_.hidden()));
  device_download(host.data(), c_.b.normed, host.size() * sizeof(Elem), c_.stream);
  return std::vector<float>(host.begin(), host.end());
}

template class Model<F32>;
template class Model<BF16>;

}  // namespace tigon::convergence
