// Plans of training steps, searched for the largest that fits.
#include "convergence/maxlen.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convergence/model.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;  // tokens of a sequence, sequences of a batch

template <class P>
Ops<P> ops_of(Side side) {
  return side == Side::kFused ? fused_ops<P>() : naive_ops<P>();
}

// What the chain of head and cross entropy holds at its peak, for each logit: the logits in the
// element type, and in fp32 the log probabilities, their gradient and that of the logits, which in
// fp32 takes the place of the logits. No other op comes near it where V is much larger than H.
int64_t naive_transient(const ModelConfig& c, DType dtype) {
  const int64_t each = dtype == DType::kF32 ? 3 * 4 : 2 + 3 * 4;
  return each * c.tokens_per_pass() * c.vocabulary;
}

template <class P>
StepMemory plan(const ModelConfig& config, Side side, int devices) {
  constexpr DType kType = dtype_of<typename P::Elem>;
  constexpr int64_t kWeight = kType == DType::kF32 ? 4 : 2;
  // Gradient, master weight where it is another, two moments, the sum of several gradients.
  const int64_t training =
      kWeight + (kType == DType::kF32 ? 0 : 4) + 2 * 4 + (config.accumulate > 1 ? 4 : 0);
  const ParameterLayout layout(config);
  StepMemory memory;
  const int64_t state = layout.total * kWeight + layout.trained * training;
  memory.state = (state + devices - 1) / devices;
  memory.activations = Model<P>::plan_bytes(config, ops_of<P>(side)) - state;
  if (side != Side::kFused) memory.transient = naive_transient(config, kType);
  return memory;
}

// The largest n from 1 that fits; memory grows with n.
template <class Fits>
int64_t largest(const Fits& fits) {
  int64_t low = 0, high = 1;
  while (high < kMost && fits(high)) {
    low = high;
    high *= 2;
  }
  while (low + 1 < high) {
    const int64_t middle = std::midpoint(low, high);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

Batch random_batch(const ModelConfig& config) {
  const int64_t n = config.tokens_per_pass();
  Batch batch;
  for (int64_t i = 0; i < n; ++i) {
    const auto id = [&](uint64_t stream) {
      return static_cast<int64_t>(random_bits(1, stream, static_cast<uint64_t>(i)) %
                                  static_cast<uint64_t>(config.vocabulary));
    };
    batch.input.push_back(id(0));
    batch.target.push_back(id(1));
  }
  batch.order.resize(static_cast<size_t>(n));
  std::iota(batch.order.begin(), batch.order.end(), 0);
  const auto id_at = [&](int32_t place) { return batch.input[static_cast<size_t>(place)]; };
  std::stable_sort(batch.order.begin(), batch.order.end(),
                   [&](int32_t a, int32_t b) { return id_at(a) < id_at(b); });
  for (int32_t i = 0; i < static_cast<int32_t>(n); ++i)
    if (i == 0 || id_at(batch.order[static_cast<size_t>(i)]) !=
                      id_at(batch.order[static_cast<size_t>(i - 1)]))
      batch.first.push_back(i);
  batch.first.resize(static_cast<size_t>(n) + 1, static_cast<int32_t>(n));
  return batch;
}

template <class P>
int64_t measure(const ModelConfig& config, Side side) {
  const Ops<P> ops = ops_of<P>(side);
  try {
    Model<P>::tune(config, ops);
    const size_t before = device_memory_stats().current;
    device_memory_reset_high_water();
    Model<P> model(config, ops);
    model.set_weights(initial_weights(config, 1));
    model.step(std::vector<Batch>(static_cast<size_t>(config.accumulate), random_batch(config)),
               {0, 0.0});
    return static_cast<int64_t>(device_memory_stats().high_water - before);
  } catch (const DeviceError& error) {
    throw ConvergeError(5, fmt::format("{} {}: {}", config.name, name_of(side), error.what()));
  }
}

}  // namespace

StepMemory planned_step(const ModelConfig& config, DType dtype, Side side, int devices) {
  return dtype == DType::kF32 ? plan<F32>(config, side, devices)
                              : plan<BF16>(config, side, devices);
}

int64_t longest_sequence(ModelConfig config, DType dtype, Side side, int64_t bytes, int devices) {
  return largest([&](int64_t sequence) {
    config.sequence = static_cast<int>(sequence);
    return planned_step(config, dtype, side, devices).total() <= bytes;
  });
}

int64_t largest_batch(ModelConfig config, DType dtype, Side side, int64_t bytes, int devices) {
  return largest([&](int64_t batch) {
    config.batch = static_cast<int>(batch);
    return planned_step(config, dtype, side, devices).total() <= bytes;
  });
}

int64_t measured_step(const ModelConfig& config, DType dtype, Side side) {
  return dtype == DType::kF32 ? measure<F32>(config, side) : measure<BF16>(config, side);
}

}  // namespace tigon::convergence
