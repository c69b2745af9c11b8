// SPDX-License-Identifier: Apache-2.0
// Experiments on one kernel alone: forward and backward of a layer's norm and of the loss.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "convergence/experiments.h"
#include "convergence/ops.h"
#include "convergence/require.h"
#include "convergence/statistics.h"
#include "convergence/text_data.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {
namespace {

using Elem = BF16::Elem;

DeviceBuffer random_elements(int64_t n, uint64_t stream) {
  std::vector<Elem> host(static_cast<size_t>(n));
  for (size_t i = 0; i < host.size(); ++i)
    host[i] = Elem(static_cast<float>(random_bits(1, stream, i) >> 40) * 0x1p-22f - 2.0f);
  DeviceBuffer buffer(host.size() * sizeof(Elem));
  device_upload(buffer.data(), host.data(), buffer.bytes());
  device_synchronize();
  return buffer;
}

// What one side of a kernel needs: seconds of a call, and the most bytes allocated with its inputs.
struct Cost {
  double seconds = 0;
  size_t peak = 0;
};

// `work` is one forward and backward with everything that it keeps between the two.
Cost cost_of(const std::function<void()>& work) {
  device_memory_reset_high_water();
  work();
  device_synchronize();
  Cost cost{.peak = device_memory_stats().high_water};
  if (!on_gpu()) return cost;
  constexpr int kSamples = 31, kCalls = 10;
  std::vector<double> seconds;
  GpuTimer timer;
  for (int i = 0; i < kSamples; ++i) {
    timer.start(nullptr);
    for (int j = 0; j < kCalls; ++j) work();
    timer.stop(nullptr);
    seconds.push_back(timer.seconds() / kCalls);
  }
  cost.seconds = median(seconds);
  return cost;
}

std::vector<Finding> findings(const Cost& naive, const Cost& fused, const std::string& size) {
  Finding speed = no_gpu();
  if (on_gpu())
    speed = {naive.seconds / fused.seconds,
             fmt::format("median of warm calls: naive {:.4g} us, fused {:.4g} us",
                         1e6 * naive.seconds, 1e6 * fused.seconds),
             size};
  const auto mebibytes = [](size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  return {speed,
          {static_cast<double>(naive.peak) / static_cast<double>(fused.peak),
           fmt::format("peak of the arena with inputs and outputs: naive {:.1f} MiB, fused {:.1f} "
                       "MiB",
                       mebibytes(naive.peak), mebibytes(fused.peak)),
           size}};
}

Cost rms_norm_cost(const Ops<BF16>& ops, int64_t tokens, int64_t hidden) {
  const DeviceBuffer x = random_elements(tokens * hidden, 1), w = random_elements(hidden, 2);
  const DeviceBuffer dy = random_elements(tokens * hidden, 3);
  return cost_of([&] {
    const DeviceBuffer y(dy.bytes()), rstd(static_cast<size_t>(tokens) * sizeof(float));
    const DeviceBuffer dw(static_cast<size_t>(hidden) * sizeof(float));
    const Elem *const in = x.as<Elem>(), *const weight = w.as<Elem>();
    rms_norm::Forward<BF16> forward;
    forward.x = view(in, tokens, hidden);
    forward.w = view(weight, hidden);
    forward.y = view(y.as<Elem>(), tokens, hidden);
    forward.rstd = view(rstd.as<float>(), tokens);
    require(ops.run(forward, nullptr), "rms_norm forward");
    const Elem* const gradient = dy.as<Elem>();
    const float* const kept = rstd.as<float>();
    rms_norm::Backward<BF16> backward;
    backward.dy = view(gradient, tokens, hidden);
    backward.x = forward.x;
    backward.w = forward.w;
    backward.rstd = view(kept, tokens);
    backward.dx = view(dy.as<Elem>(), tokens, hidden);
    backward.dw = view(dw.as<float>(), hidden);
    const DeviceBuffer scratch(ops.workspace(backward));
    backward.scratch = {scratch.data(), scratch.bytes()};
    require(ops.run(backward, nullptr), "rms_norm backward");
    device_synchronize();
  });
}

using Loss = cross_entropy::ForwardBackward<BF16>;

Cost cross_entropy_cost(const Ops<BF16>& ops, int64_t tokens, int64_t vocabulary) {
  const DeviceBuffer logits = random_elements(tokens * vocabulary, 1);
  std::vector<int64_t> targets(static_cast<size_t>(tokens));
  for (size_t i = 0; i < targets.size(); ++i)
    targets[i] = static_cast<int64_t>(random_bits(1, 2, i) % static_cast<uint64_t>(vocabulary));
  const DeviceBuffer target(targets.size() * sizeof(int64_t));
  device_upload(target.data(), targets.data(), target.bytes());
  return cost_of([&] {
    const DeviceBuffer loss(sizeof(float)), lse(static_cast<size_t>(tokens) * sizeof(float));
    const int64_t* const classes = target.as<int64_t>();
    Loss args;
    args.logits = view(logits.as<Elem>(), tokens, vocabulary);
    args.target = view(classes, tokens);
    args.loss = view(loss.as<float>(), 1);
    args.lse = view(lse.as<float>(), tokens);
    const DeviceBuffer scratch(ops.workspace(args));
    args.scratch = {scratch.data(), scratch.bytes()};
    require(ops.run(args, nullptr), "cross_entropy forward_backward");
    device_synchronize();
  });
}

}  // namespace

std::vector<Finding> run_rms_norm(const ExperimentContext& context) {
  const int64_t tokens = on_gpu() ? 16384 : context.settings.quick ? 64 : 512;
  const int64_t hidden = on_gpu() ? 8192 : 2048;
  const Cost naive = rms_norm_cost(naive_ops<BF16>(), tokens, hidden);
  return findings(naive, rms_norm_cost(fused_ops<BF16>(), tokens, hidden),
                  fmt::format("bf16 T={} H={}", tokens, hidden));
}

std::vector<Finding> run_cross_entropy(const ExperimentContext& context) {
  const int64_t tokens = on_gpu() ? 8192 : context.settings.quick ? 16 : 128;
  const int64_t vocabulary = on_gpu() ? 128256 : 16032;
  const Cost naive = cross_entropy_cost(naive_ops<BF16>(), tokens, vocabulary);
  const Cost fused = cross_entropy_cost(fused_ops<BF16>(), tokens, vocabulary);
  return findings(naive, fused, fmt::format("bf16 T={} V={}", tokens, vocabulary));
}

}  // namespace tigon::convergence
