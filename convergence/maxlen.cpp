// SPDX-License-Identifier: Apache-2.0
// Plans of training steps, searched for the largest that fits.
#include "convergence/maxlen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "convergence/model.h"
#include "convergence/train.h"
#include "kernels/device/gemm.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;  // tokens of a sequence, sequences of a batch

std::vector<std::string> kernels_of(Side side) {
  return side == Side::kFused ? op_names() : std::vector<std::string>{};
}

// Elements of parameters that are gathered, and of gradients before they are reduced.
int64_t gathered_elements(const ParameterLayout& layout, const Ranks& ranks) {
  if (ranks.count == 1 || ranks.sharding == Sharding::kTp) return 0;
  if (ranks.sharding == Sharding::kZero3) {
    // stage3_max_live_parameters, stage3_prefetch_bucket_size and reduce_bucket_size.
    constexpr int64_t kLive = 1000000000, kPrefetch = 50000000, kBucket = 500000000;
    return std::min(layout.total, kLive + kPrefetch) + std::min(layout.trained, kBucket);
  }
  int64_t block = 0;
  for (const Parameter& p : layout.parameters)
    if (p.name.starts_with("layers.0.")) block += p.size();
  const auto blocks = static_cast<int64_t>(layout.blocks.size());
  const int64_t at_once = layout.total - std::max<int64_t>(blocks - 2, 0) * block;
  return at_once + std::min(layout.trained, at_once);
}

template <class P>
StepMemory plan(const ModelConfig& whole, const std::vector<std::string>& kernels,
                const Ranks& ranks) {
  const ModelConfig config = config_of_rank(whole, ranks);
  constexpr DType kType = dtype_of<typename P::Elem>;
  constexpr int64_t kWeight = kType == DType::kF32 ? 4 : 2;
  // Gradient, master weight where it is another, two moments, the sum of several gradients.
  const int64_t training =
      kWeight + (kType == DType::kF32 ? 0 : 4) + 2 * 4 + (config.accumulate > 1 ? 4 : 0);
  const ParameterLayout layout(config);
  StepMemory memory;
  const int64_t state = layout.total * kWeight + layout.trained * training;
  const int shares = ranks.sharding == Sharding::kTp ? 1 : ranks.count;
  memory.state = (state + shares - 1) / shares;
  memory.gathered = gathered_elements(layout, ranks) * kWeight;
  memory.activations = Model<P>::plan_arena(config, mixed_ops<P>(kernels)).bytes - state;
  memory.transient = planned_intermediates(config, kType, kernels);
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

template <class P>
int64_t measure(const ModelConfig& config, Side side) {
  const Ops<P> ops = mixed_ops<P>(kernels_of(side));
  try {
    Model<P>::tune(config, ops);
    const size_t before = device_memory_stats().current;
    device_memory_reset_high_water();
    Model<P> model(config, ops);
    model.set_weights(initial_weights(config, 1));
    model.step(std::vector<Batch>(static_cast<size_t>(config.accumulate),
                                  random_batch(config.tokens_per_pass(), config.vocabulary)),
               {0, 0.0});
    return static_cast<int64_t>(device_memory_stats().high_water - before);
  } catch (const DeviceOutOfMemory& error) {
    throw OutOfMemory(fmt::format("{} {}: {}", config.name, name_of(side), error.what()));
  } catch (const DeviceError& error) {
    throw ConvergeError(5, fmt::format("{} {}: {}", config.name, name_of(side), error.what()));
  }
}

// Of the products of a head whose logits are whole; on the host each core has a part of it. On a
// GPU they are cuDNN's, whose workspaces are not in the plan.
int64_t head_workspace(const ModelConfig& c) {
  if (device_info().kind == "cuda") return 0;
  const int64_t t = c.tokens_per_pass(), v = c.vocabulary, h = c.hidden;
  size_t bytes = 0;
  for (const auto& [m, n, k] : {std::array{t, v, h}, std::array{t, h, v}, std::array{v, h, t}}) {
    Gemm product;
    product.m = m;
    product.n = n;
    product.k = k;
    bytes = std::max(bytes, gemm_workspace(product));
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

ModelConfig config_of_rank(const ModelConfig& config, const Ranks& ranks) {
  ModelConfig c = config;
  if (ranks.sharding != Sharding::kTp) return c;
  const int n = ranks.count;
  const auto divide = [&](int* size, const char* what) {
    if (*size % n != 0)
      throw ConvergeError(2, fmt::format("{} has {} {}, which {} ranks cannot share evenly",
                                         config.name, *size, what, n));
    *size /= n;
  };
  divide(&c.heads, "heads");
  divide(&c.intermediate, "columns of its MLP");
  if (n % c.kv_heads == 0)
    c.kv_heads = 1;  // several ranks have the same one
  else
    divide(&c.kv_heads, "key and value heads");
  c.vocabulary = (c.vocabulary + n - 1) / n;
  return c;
}

// For each logit: the logits in the element type, and in fp32 the log probabilities, their gradient
// and that of the logits, which in fp32 takes the place of the logits. Or, where that is more, the
// logits and the workspace of a product.
int64_t planned_intermediates(const ModelConfig& c, DType dtype,
                              const std::vector<std::string>& kernels) {
  const std::string head = op_name<linear_cross_entropy::Forward>();
  if (std::find(kernels.begin(), kernels.end(), head) != kernels.end()) return 0;
  const int64_t logits = int64_t{c.tokens_per_pass()} * c.vocabulary;
  const int64_t elem = dtype == DType::kF32 ? 4 : 2,
                loss = dtype == DType::kF32 ? 3 * 4 : 2 + 3 * 4;
  return std::max(loss * logits, elem * logits + head_workspace(c));
}

StepMemory planned_step(const ModelConfig& config, DType dtype,
                        const std::vector<std::string>& kernels, const Ranks& ranks) {
  return dtype == DType::kF32 ? plan<F32>(config, kernels, ranks)
                              : plan<BF16>(config, kernels, ranks);
}

StepMemory planned_step(const ModelConfig& config, DType dtype, Side side, const Ranks& ranks) {
  return planned_step(config, dtype, kernels_of(side), ranks);
}

int64_t longest_sequence(ModelConfig config, DType dtype, Side side, int64_t bytes,
                         const Ranks& ranks) {
  return largest([&](int64_t sequence) {
    config.sequence = static_cast<int>(sequence);
    return planned_step(config, dtype, side, ranks).total() <= bytes;
  });
}

int64_t largest_batch(ModelConfig config, DType dtype, Side side, int64_t bytes,
                      const Ranks& ranks) {
  return largest([&](int64_t batch) {
    config.batch = static_cast<int>(batch);
    return planned_step(config, dtype, side, ranks).total() <= bytes;
  });
}

int64_t measured_step(const ModelConfig& config, DType dtype, Side side) {
  return dtype == DType::kF32 ? measure<F32>(config, side) : measure<BF16>(config, side);
}

}  // namespace tigon::convergence
