// SPDX-License-Identifier: Apache-2.0
// tigon maxlen: the longest sequence and the largest batch of a model that fit into memory.
#include "convergence/maxlen.h"

#include <fmt/format.h>

#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/options/axis_values.h"
#include "harness/cli/options/models.h"
#include "harness/cli/options/selection.h"
#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

using convergence::ModelConfig;
using convergence::Side;

struct MaxlenOptions {
  std::string model, memory = "80GiB", dtype = "bf16";
  int devices = 0, sequence = 4096, batch = 1, layers = 0;
  bool confirm = false;
};

constexpr int kMostDevices = 1024;

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
               int64_t memory, int devices) {
  const int64_t sequence = convergence::longest_sequence(config, dtype, side, memory, devices);
  const int64_t batch = convergence::largest_batch(config, dtype, side, memory, devices);
  const auto parts = convergence::planned_step(config, dtype, side, devices);
  fmt::print("{:<6} {:>16} {:>15}   {} + {} + {}\n", convergence::name_of(side), sequence, batch,
             show(parts.state), show(parts.activations), show(parts.transient));
  if (!options.confirm || sequence == 0) return;
  config.sequence = static_cast<int>(sequence);
  confirm(config, dtype, side);
}

int maxlen(const MaxlenOptions& options) {
  const TrainedModel& model = trained_model(options.model);
  const ModelConfig config = config_of(model, options);
  const DType dtype = dtype_named(options.dtype);
  if (dtype == DType::kF16) throw UsageError("--dtype f16: bf16 and f32 are trained");
  const int64_t memory = parse_memory(options.memory);
  const auto state = [&](int devices) {
    return convergence::planned_step(config, dtype, Side::kFused, devices).state;
  };
  int devices = std::max(1, options.devices);
  while (options.devices == 0 && devices < kMostDevices && state(devices) > memory) devices *= 2;
  if (options.devices == 0 && state(devices) > memory)
    throw UsageError(fmt::format(
        "--memory {}: {} of weights, gradients and optimizer state do not fit even on {} devices; "
        "give more memory, or fewer --layers",
        options.memory, show(state(1)), devices));
  if (options.confirm && devices > 1)
    throw UsageError(fmt::format(
        "--confirm trains on one device, and {} of weights, gradients and optimizer state do not "
        "fit into {}; take a smaller model or fewer --layers",
        show(state(1)), options.memory));
  fmt::print("{}, {} layers, {}: {} on each of {} device{}; planned, not measured\n", model.name,
             config.layers, name_of(dtype), options.memory, devices, devices == 1 ? "" : "s");
  if (devices > 1 && options.devices == 0)
    fmt::print(
        "  (state of {} does not fit on fewer; it is divided evenly, as FSDP and ZeRO-3 do)\n",
        show(state(1)));
  fmt::print("{:<6} {:>16} {:>15}   state + activations + intermediates, at {} x {}\n", "",
             "longest sequence", "largest batch", options.batch, options.sequence);
  fmt::print("{:<6} {:>16} {:>15}\n", "", fmt::format("(batch {})", options.batch),
             fmt::format("(of {})", options.sequence));
  for (const Side side : {Side::kNaive, Side::kFused})
    show_side(options, config, dtype, side, memory, devices);
  return kExitOk;
}

}  // namespace

void add_maxlen(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon maxlen --model llama3-8b --memory 80GiB\n"
      "  ./tigon maxlen --model llama3-8b --memory 80GiB --devices 8\n"
      "  ./tigon maxlen --model llama3.2-1b --memory 70GiB --confirm     on a GPU: one step of "
      "each\n"
      "Planned: the arena of a training step (weights, gradients, AdamW, activations of all "
      "layers,\n"
      "no recomputation), naive: cuDNN primitives with all logits at once; fused: the kernels.");
  const auto options = std::make_shared<MaxlenOptions>();
  command.option("--model", &options->model, "see ./tigon list models").required();
  command.option("--memory", &options->memory, "of each device (80GiB)");
  command.option("--dtype", &options->dtype, "bf16 or f32 (bf16)");
  command
      .option("--devices", &options->devices,
              "that share weights, gradients and optimizer state (the fewest they fit on)")
      .between(1, kMostDevices);
  command.option("--sequence", &options->sequence, "of the largest batch (4096)")
      .between(1, 1 << 24);
  command.option("--batch", &options->batch, "of the longest sequence (1)").between(1, 1 << 20);
  command.option("--layers", &options->layers, "instead of the model's").between(1, 1 << 12);
  command.flag("--confirm", &options->confirm,
               "train one step of the longest sequence and compare");
  command.run([program, options] { program->exit_code = maxlen(*options); });
}

}  // namespace tigon::cli
