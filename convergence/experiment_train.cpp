// SPDX-License-Identifier: Apache-2.0
// Experiments that train, or plan a training: throughput, memory and the longest context.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convergence/experiments.h"
#include "convergence/maxlen.h"
#include "convergence/measure_parts.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

ModelConfig preset(const char* name) { return *find_config(name); }

std::string size_of(const ModelConfig& c) {
  return fmt::format("{}: {} layers, H={} V={}, {} x {} tokens", c.name, c.layers, c.hidden,
                     c.vocabulary, c.batch, c.sequence);
}

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

double saved(int64_t naive, int64_t fused) {
  return 1.0 - static_cast<double>(fused) / static_cast<double>(naive);
}

// With the batch that fills 60 GiB of a GPU on the naive side, or a small one.
ModelConfig with_wide_batch(ModelConfig c) {
  c.batch = 16;
  if (on_gpu()) c.batch = static_cast<int>(largest_batch(c, DType::kBF16, Side::kNaive, 60 * kGiB));
  return c;
}

// Peak memory of one step of each side.
Finding measured_memory(const ModelConfig& c) {
  const int64_t naive = measured_step(c, DType::kBF16, Side::kNaive);
  const int64_t fused = measured_step(c, DType::kBF16, Side::kFused);
  return {saved(naive, fused),
          fmt::format("peak of the arena in one step: naive {}, fused {}", mebibytes(naive),
                      mebibytes(fused)),
          size_of(c)};
}

std::string launches_of(const std::string& naive, const std::string& fused) {
  return naive == fused ? "steps: " + fused
                        : fmt::format("steps: naive {}, fused {}", naive, fused);
}

// Both sides of a model, compared on a few steps that are not judged.
struct Steps {
  Finding throughput, memory;
};

Steps timed_steps(const ModelConfig& c, int steps) {
  const auto measured = [&](const std::vector<std::string>& kernels) {
    PartsRequest request{c, DType::kBF16, kernels};
    request.steps = steps;
    request.memory = device_info().memory_bytes;  // what freed memory a pool keeps is ours, too
    return measure_parts(request);
  };
  const PartsReport naive = measured({}), fused = measured(op_names());
  Steps found{{.size = size_of(c)}, {.size = size_of(c)}};
  for (const PartsReport* side : {&naive, &fused})
    if (side->outcome != Outcome::kMeasured) {
      found.throughput.reason = found.memory.reason = side->reason;
      return found;
    }
  found.throughput.value = fused.tokens_per_s / naive.tokens_per_s - 1.0;
  found.throughput.basis =
      fmt::format("tokens/s, median of {} steps: naive {:.0f}, fused {:.0f}; attention by {}; {}",
                  steps, naive.tokens_per_s, fused.tokens_per_s, fused.attention,
                  launches_of(naive.launches, fused.launches));
  found.memory.value = saved(naive.peak_bytes, fused.peak_bytes);
  found.memory.basis = fmt::format("peak of a step: naive {}, fused {}",
                                   mebibytes(naive.peak_bytes), mebibytes(fused.peak_bytes));
  return found;
}

// `steps` of each are timed on a GPU.
Steps compared_steps(const ModelConfig& c, int steps) {
  return on_gpu() ? timed_steps(c, steps) : Steps{no_gpu(), measured_memory(c)};
}

void add_reason(Finding& finding, const std::string& more) {
  finding.reason += (finding.reason.empty() ? "" : ", ") + more;
}

ModelConfig with_medusa(int heads, bool frozen, const ExperimentSettings& settings) {
  ModelConfig c = preset(on_gpu() ? "350m" : "tiny");
  c.medusa = heads;
  c.frozen = frozen;
  c.graph = settings.graph;
  return settings.quick && !on_gpu() ? c : with_wide_batch(c);
}

// Throughput of both sides from their trainings, which are judged on the way.
Finding throughput(const ConvergeResult& trained, const ModelConfig& c) {
  if (!on_gpu() || trained.verdicts.empty()) return no_gpu();
  return {trained.verdicts.back().speed_ratio - 1.0,
          fmt::format("tokens/s, median over the steps; attention by {}; {}",
                      trained.runs.front().attention,
                      launches_of(trained.runs[0].launches, trained.runs[1].launches)),
          size_of(c)};
}

// Sizes of Llama-3-8B divided by 32, or its own; layers are recomputed, as in the claim's training.
ModelConfig shaped_as_8b(int divisor) {
  ModelConfig c = preset("tiny");
  c.name = divisor == 1 ? "llama3-8b" : fmt::format("llama3-8b / {}", divisor);
  c.hidden = 4096 / divisor;
  c.head_size = divisor == 1 ? 128 : 32;
  c.heads = c.hidden / c.head_size;
  c.kv_heads = std::max(1, c.heads / 4);
  c.intermediate = 14336 / divisor;
  c.vocabulary = 128256 / divisor;
  c.layers = 32;
  c.recompute = true;
  c.sequence = 4096;
  c.logits_bytes = int64_t{256} * 1024 * 1024 / (divisor * divisor);
  return c;
}

// A cut of that model for one GPU, with the batch that fills 120 GiB of it on the naive side.
ModelConfig cut_of_8b(int layers, bool graph) {
  ModelConfig c = preset("llama3-8b-cut");
  c.graph = graph;
  c.layers = layers;
  c.recompute = true;
  const int64_t batch = largest_batch(c, DType::kBF16, Side::kNaive, 120 * kGiB);
  c.batch = static_cast<int>(std::max<int64_t>(1, batch));
  return c;
}

ModelConfig small_8b(bool quick) {
  ModelConfig c = shaped_as_8b(32);
  c.layers = quick ? 2 : 8;
  c.sequence = 512;
  c.batch = 1;
  return c;
}

struct Frontier {
  int64_t naive = 0, fused = 0;
  double ratio() const { return static_cast<double>(fused) / static_cast<double>(naive); }
};

Frontier planned_frontier(const ModelConfig& c, int64_t bytes, int devices) {
  return {longest_sequence(c, DType::kBF16, Side::kNaive, bytes, {devices}),
          longest_sequence(c, DType::kBF16, Side::kFused, bytes, {devices})};
}

// One step of a sequence in `bytes`: its peak, or nothing when it is out of memory.
bool fits(ModelConfig c, Side side, int64_t sequence, int64_t bytes) {
  c.sequence = static_cast<int>(sequence);
  try {
    return measured_step(c, DType::kBF16, side) <= bytes;
  } catch (const OutOfMemory&) {
    return false;
  }
}

}  // namespace

std::vector<Finding> run_train(const ExperimentContext& context) {
  ConvergeRequest request;
  request.config = on_gpu() ? "350m" : "tiny";
  request.seed = context.settings.seed;
  request.data = context.settings.data;
  request.graph = context.settings.graph;
  request.quick = true;
  if (context.settings.quick) request.steps = 10;
  const ModelConfig wide = with_wide_batch(preset(request.config.c_str()));
  if (on_gpu()) request.batch = wide.batch;
  const ConvergeResult trained = converge(request, context.observer, context.stop);
  if (trained.interrupted) return {};
  return {throughput(trained, wide), measured_memory(wide)};
}

std::vector<Finding> run_8b(const ExperimentContext& context) {
  // Eight devices of 80 GiB share the state; the batch is the largest that the naive side fits in.
  constexpr int kDevices = 8;
  const bool graph = context.settings.graph;
  ModelConfig c = shaped_as_8b(1);
  c.batch = static_cast<int>(
      std::max<int64_t>(1, largest_batch(c, DType::kBF16, Side::kNaive, 80 * kGiB, {kDevices})));
  const auto bytes = [&](Side side) {
    return planned_step(c, DType::kBF16, side, {kDevices}).total();
  };
  Finding memory{saved(bytes(Side::kNaive), bytes(Side::kFused)),
                 fmt::format("planned, on each of {} devices of 80 GiB", kDevices), size_of(c)};
  // Time of as many layers as fit. Memory of 8: the training state of 24 fills most of the GPU,
  // which is not so where eight devices share the whole model's.
  const Finding throughput = on_gpu() ? timed_steps(cut_of_8b(24, graph), 5).throughput : no_gpu();
  const Finding small =
      measured_memory(on_gpu() ? cut_of_8b(8, graph) : small_8b(context.settings.quick));
  memory.from = kPlanned;
  memory.reason = fmt::format("a cut of {} in {}", show(Quantity::kSaved, small.value), small.size);
  return {throughput, memory};
}

// Heads that the claim is made for, with the backbone trained and frozen.
std::vector<Finding> run_medusa(const ExperimentContext& context) {
  Steps five = compared_steps(with_medusa(5, false, context.settings), 10);
  for (const auto& [heads, frozen] : {std::pair{3, false}, {3, true}, {5, true}}) {
    const std::string what =
        fmt::format("{} heads, backbone {}", heads, frozen ? "frozen" : "trained");
    context.note("medusa: " + what);
    if (context.stopped()) return {};
    const Steps steps = compared_steps(with_medusa(heads, frozen, context.settings), 5);
    add_reason(five.memory,
               fmt::format("{}: {}", what, show(Quantity::kSaved, steps.memory.value)));
    if (on_gpu())
      add_reason(five.throughput,
                 fmt::format("{}: {}", what, show(Quantity::kGain, steps.throughput.value)));
  }
  return {five.throughput, five.memory};
}

std::vector<Finding> run_frontier(const ExperimentContext& context) {
  const int devices = 8;
  ModelConfig full = shaped_as_8b(1);
  full.batch = 1;
  const Frontier planned = planned_frontier(full, 80 * kGiB, devices);
  Finding context_length{planned.ratio(),
                         fmt::format("planned, on each of {} devices of 80 GiB: naive {}, fused {}",
                                     devices, planned.naive, planned.fused),
                         size_of(full)};
  // The same in little: what is planned to fit does, and one token in eight more does not.
  ModelConfig small = shaped_as_8b(on_gpu() ? 8 : 32);
  small.layers = 2;
  small.batch = 1;
  const int64_t bytes = on_gpu() ? 4 * kGiB : (context.settings.quick ? 40 : 64) * (kGiB >> 10);
  const Frontier found = planned_frontier(small, bytes, 1);
  const auto confirmed = [&](Side side, int64_t n) {
    return fits(small, side, n, bytes) && !fits(small, side, n + n / 8, bytes);
  };
  const bool sure = confirmed(Side::kNaive, found.naive) && confirmed(Side::kFused, found.fused);
  context_length.from = kPlanned;
  if (!sure) context_length.value = std::nan("");
  context_length.reason =
      fmt::format("in {} of memory, {} layers, V={}: naive {}, fused {} tokens, {} by runs",
                  mebibytes(bytes), small.layers, small.vocabulary, found.naive, found.fused,
                  sure ? "confirmed" : "NOT confirmed");
  return {context_length};
}

}  // namespace tigon::convergence
