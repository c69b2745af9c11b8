// SPDX-License-Identifier: Apache-2.0
// tigon maxlen: the longest sequence and the largest batch of a model that fit into memory.
#include "convergence/maxlen.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/options/axis_values.h"
#include "harness/cli/options/models.h"
#include "harness/cli/options/selection.h"
#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

using convergence::ModelConfig;
using convergence::Ranks;
using convergence::Sharding;
using convergence::Side;

struct MaxlenOptions {
  std::string model, memory = "80GiB", dtype = "bf16", layout = "fsdp2";
  int ranks = 0, sequence = 4096, batch = 1, layers = 0;
  bool confirm = false;
};

constexpr int kMostRanks = 1024;
const std::vector<std::string> kLayouts = {"fsdp2", "zero3", "tp"};  // in the order of Sharding

// The training model of convergence/ with these sizes: RMSNorm, rotary attention, a gated MLP.
ModelConfig config_of(const TrainedModel& m, const MaxlenOptions& options) {
  if (m.expert_intermediate > 0)
    throw UsageError(fmt::format("--model {}: it has experts, of which there is no plan", m.name));
  if (!m.can_be_planned())
    throw UsageError(
        fmt::format("--model {}: plans are of models with RMSNorm and a gated MLP", m.name));
  ModelConfig c;
  c.name = m.name;
  c.layers = options.layers > 0 ? options.layers : static_cast<int>(m.layers);
  c.hidden = static_cast<int>(m.hidden);
  c.heads = static_cast<int>(m.heads);
  c.kv_heads = static_cast<int>(m.kv_heads);
  c.head_size = static_cast<int>(m.head_size);
  c.intermediate = static_cast<int>(m.intermediate);
  c.vocabulary = static_cast<int>(m.vocabulary);
  c.tied = m.tied;
  c.sequence = options.sequence;
  c.batch = options.batch;
  c.logits_bytes = int64_t{256} << 20;
  return c;
}

std::string show(int64_t bytes) { return show_bytes(static_cast<double>(bytes)); }

// One step of the found size where it is: what was planned beside what was allocated.
void confirm(const ModelConfig& config, DType dtype, Side side) {
  const int64_t planned = convergence::planned_step(config, dtype, side).total();
  const int64_t measured = convergence::measured_step(config, dtype, side);
  fmt::print("{:<6} sequence {}, batch {}: planned {}, measured {} on the {} ({:+.2f}%)\n",
             convergence::name_of(side), config.sequence, config.batch, show(planned),
             show(measured), default_executor() == "cuda" ? "GPU" : "host executor",
             100.0 * static_cast<double>(measured - planned) / static_cast<double>(planned));
}

void show_side(const MaxlenOptions& options, ModelConfig config, DType dtype, Side side,
               int64_t memory, const Ranks& ranks) {
  const int64_t sequence = convergence::longest_sequence(config, dtype, side, memory, ranks);
  const int64_t batch = convergence::largest_batch(config, dtype, side, memory, ranks);
  const auto parts = convergence::planned_step(config, dtype, side, ranks);
  fmt::print("{:<6} {:>16} {:>15}   {} + {} + {} + {}\n", convergence::name_of(side), sequence,
             batch, show(parts.state), show(parts.gathered), show(parts.activations),
             show(parts.transient));
  if (!options.confirm || sequence == 0) return;
  config.sequence = static_cast<int>(sequence);
  confirm(config, dtype, side);
}

int64_t state_of(const ModelConfig& config, DType dtype, const Ranks& ranks) {
  return convergence::planned_step(config, dtype, Side::kFused, ranks).state;
}

// Those asked for, or the fewest whose part of the state fits.
Ranks ranks_of(const MaxlenOptions& options, const ModelConfig& config, DType dtype,
               int64_t memory) {
  const auto layout = std::find(kLayouts.begin(), kLayouts.end(), options.layout);
  Ranks ranks{std::max(1, options.ranks), static_cast<Sharding>(layout - kLayouts.begin())};
  convergence::config_of_rank(config, ranks);  // which refuses what cannot be divided
  if (options.ranks > 0) return ranks;
  while (ranks.count < kMostRanks && state_of(config, dtype, ranks) > memory) ranks.count *= 2;
  if (state_of(config, dtype, ranks) > memory)
    throw UsageError(fmt::format(
        "--memory {}: {} of weights, gradients and optimizer state do not fit even on {} ranks; "
        "give more memory, or fewer --layers",
        options.memory, show(state_of(config, dtype, {})), ranks.count));
  return ranks;
}

int maxlen(const MaxlenOptions& options) {
  const TrainedModel& model = trained_model(options.model);
  const ModelConfig config = config_of(model, options);
  const DType dtype = dtype_named(options.dtype);
  if (dtype == DType::kF16) throw UsageError("--dtype f16: bf16 and f32 are trained");
  const int64_t memory = parse_memory(options.memory);
  const Ranks ranks = ranks_of(options, config, dtype, memory);
  if (options.confirm && ranks.count > 1)
    throw UsageError(fmt::format(
        "--confirm trains on one device, and this is a plan of {} ranks; give --ranks 1, or take a "
        "smaller model or fewer --layers",
        ranks.count));
  const std::string on_each =
      ranks.count == 1 ? "on one device" : fmt::format("on each of {} ranks", ranks.count);
  fmt::print("{}, {} layers, {}: {} {}{}; planned, not measured\n", model.name, config.layers,
             name_of(dtype), options.memory, on_each,
             ranks.count == 1 ? "" : ", " + options.layout);
  if (ranks.count > 1 && options.ranks == 0)
    fmt::print("  (state of {} does not fit on fewer)\n", show(state_of(config, dtype, {})));
  fmt::print("{:<6} {:>16} {:>15}   state + gathered + activations + intermediates, at {} x {}\n",
             "", "longest sequence", "largest batch", options.batch, options.sequence);
  fmt::print("{:<6} {:>16} {:>15}\n", "", fmt::format("(batch {})", options.batch),
             fmt::format("(of {})", options.sequence));
  for (const Side side : {Side::kNaive, Side::kFused})
    show_side(options, config, dtype, side, memory, ranks);
  return kExitOk;
}

int guarded(const MaxlenOptions& options) {
  try {
    return maxlen(options);
  } catch (const convergence::ConvergeError& error) {
    if (error.exit_code != kExitUsage) throw;
    throw UsageError(fmt::format("--layout {}: {}", options.layout, error.what()));
  }
}

}  // namespace

void add_maxlen(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon maxlen --model llama3-8b --memory 80GiB\n"
      "  ./tigon maxlen --model llama3-8b --memory 80GiB --ranks 8 --layout zero3\n"
      "  ./tigon maxlen --model llama3.2-1b --memory 70GiB --confirm     on a GPU: one step of "
      "each\n"
      "Planned: the arena of a training step (weights, gradients, AdamW, activations of all "
      "layers,\n"
      "no recomputation), naive: cuDNN primitives with all logits at once; fused: the kernels. "
      "Gathered: parameters of\n"
      "other ranks and gradients before they are reduced. With tp all ranks have one batch "
      "together,\n"
      "and whole residuals; with the others each has its own.");
  const auto options = std::make_shared<MaxlenOptions>();
  command.option("--model", &options->model, "see ./tigon list models").required();
  command.option("--memory", &options->memory, "of each device (80GiB)");
  command.option("--dtype", &options->dtype, "bf16 or f32 (bf16)");
  command.option("--ranks", &options->ranks, "that share the model (the fewest its state fits on)")
      .between(1, kMostRanks);
  command.option("--layout", &options->layout, "how they share it: fsdp2, zero3 or tp (fsdp2)")
      .one_of(kLayouts);
  command.option("--sequence", &options->sequence, "of the largest batch (4096)")
      .between(1, 1 << 24);
  command.option("--batch", &options->batch, "of the longest sequence (1)").between(1, 1 << 20);
  command.option("--layers", &options->layers, "instead of the model's").between(1, 1 << 12);
  command.flag("--confirm", &options->confirm,
               "train one step of the longest sequence and compare");
  command.run([program, options] { program->exit_code = guarded(*options); });
}

}  // namespace tigon::cli
