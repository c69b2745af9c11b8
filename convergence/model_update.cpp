// SPDX-License-Identifier: Apache-2.0
// Gradients into weights.
#include "convergence/model_update.h"

#include <cmath>

#include "convergence/kernels.h"
#include "convergence/require.h"

namespace tigon::convergence {
namespace {

float to_float(double x) { return static_cast<float>(x); }

}  // namespace

template <class P>
void ModelUpdate<P>::upload_schedule(const UpdateSettings& settings) const {
  const PartRange range = c_.part(Part::kOptimizer);
  const auto t = static_cast<double>(settings.step + 1);
  const float correction1 = to_float(1.0 / (1.0 - std::pow(c_.config.beta1, t)));
  const float correction2 = to_float(1.0 / (1.0 - std::pow(c_.config.beta2, t)));
  const float schedule[2 * kSchedule] = {to_float(settings.rate),
                                         correction1,
                                         correction2,
                                         to_float(settings.rate * c_.config.table_rate),
                                         correction1,
                                         correction2};
  device_upload(c_.b.schedule, schedule, sizeof schedule, c_.stream);
}

template <class P>
void ModelUpdate<P>::accumulate_gradients(bool first, bool last) const {
  const PartRange range = c_.part(Part::kOptimizer);
  const auto share = 1.0f / static_cast<float>(c_.config.accumulate);
  const int64_t trained = c_.layout.trained;
  require(accumulate(c_.b.gradient, share, first, c_.b.accumulated, trained, c_.stream),
          "accumulation of gradients");
  if (last)
    require(round_to(c_.b.accumulated, c_.b.gradient, trained, c_.stream), "rounding of gradients");
}

template <class P>
void ModelUpdate<P>::update_range(int64_t first, int64_t last, const float* schedule) const {
  const ModelConfig& config = c_.config;
  AdamW<Elem> a{};
  a.weight = c_.b.weight + first;
  a.master = c_.b.master + first;
  a.m = c_.b.m + first;
  a.v = c_.b.v + first;
  a.gradient = c_.b.gradient + first;
  a.n = last - first;
  a.decayed = c_.layout.decayed - first;
  a.square_norm = c_.b.square;
  a.schedule = schedule;
  a.clip = to_float(config.clip);
  a.beta1 = to_float(config.beta1);
  a.beta2 = to_float(config.beta2);
  a.eps = to_float(config.adam_eps);
  a.weight_decay = to_float(config.weight_decay);
  require(adamw(a, c_.stream), "AdamW");
}

template <class P>
void ModelUpdate<P>::update() const {
  c_.enter(c_.phases.update());
  const PartRange range = c_.part(Part::kOptimizer);
  const ParameterLayout& layout = c_.layout;
  require(sum_of_squares(c_.b.gradient, layout.trained, c_.b.partial, c_.b.square, c_.stream),
          "gradient norm");
  const float *const common = c_.b.schedule, *const of_tables = c_.b.schedule + kSchedule;
  // In as few launches as there are rates.
  if (c_.config.table_rate == 1.0 || c_.config.frozen)
    return update_range(0, layout.trained, common);
  const int64_t tables = layout.blocks.front().qkv;
  if (layout.embedding > 0) update_range(0, layout.embedding, common);
  update_range(layout.embedding, tables, of_tables);
  update_range(tables, layout.trained, common);
}

template <class P>
double ModelUpdate<P>::gradient_norm() const {
  const PartRange range = c_.part(Part::kOther);
  float square = 0;
  device_download(&square, c_.b.square, sizeof square, c_.stream);
  return std::sqrt(static_cast<double>(square));
}

template class ModelUpdate<F32>;
template class ModelUpdate<BF16>;

}  // namespace tigon::convergence
