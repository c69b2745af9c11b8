// SPDX-License-Identifier: Apache-2.0
// How long a sequence and how large a batch of a model fit into memory, planned without a GPU.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "convergence/converge.h"

namespace tigon::convergence {

// How ranks share a model.
// kFsdp2: all of the state is divided. A rank gathers two blocks at a time, embedding, head and
//   final norm for the whole step, and has their gradients whole before they are reduced (PyTorch,
//   fully_shard on each block and on the model).
// kZero3: all of the state is divided. A rank gathers up to a number of parameters, and reduces
//   gradients in buckets (DeepSpeed's ZeRO-3 with its default sizes; Rajbhandari et al. 2020).
// kTp: each rank has its part of the heads, of the gated MLP and of the vocabulary, of the same
//   batch as the others, and whole residuals and norms (Shoeybi et al. 2019).
enum class Sharding { kFsdp2, kZero3, kTp };

struct Ranks {
  int count = 1;
  Sharding sharding = Sharding::kFsdp2;
};

// What a rank has of the model: all of it, but for kTp. Throws ConvergeError where it cannot be
// divided.
ModelConfig config_of_rank(const ModelConfig& config, const Ranks& ranks);

// Bytes of a training step of one rank.
struct StepMemory {
  int64_t state = 0;        // weights, gradients, master weights and the optimizer's two moments
  int64_t gathered = 0;     // parameters of other ranks, and gradients before they are reduced
  int64_t activations = 0;  // the rest of the arena
  int64_t transient = 0;    // largest intermediates that the naive side allocates beside the arena
  int64_t total() const { return state + gathered + activations + transient; }
};

// Of config.sequence and config.batch; bf16 or f32. Of kFsdp2 and kZero3 each rank has a batch of
// its own.
StepMemory planned_step(const ModelConfig& config, DType dtype, Side side, const Ranks& ranks = {});
// With those of op_names() as kernels.
StepMemory planned_step(const ModelConfig& config, DType dtype,
                        const std::vector<std::string>& kernels, const Ranks& ranks = {});

// StepMemory::transient: what the chain of head and cross entropy holds at its peak; 0 when it is
// a kernel. No other op comes near it where V is much larger than H.
int64_t planned_intermediates(const ModelConfig& config, DType dtype,
                              const std::vector<std::string>& kernels);

// Longest sequence for config.batch, or largest batch for config.sequence, whose step fits into
// `bytes`; 0 when not even 1 does.
int64_t longest_sequence(ModelConfig config, DType dtype, Side side, int64_t bytes,
                         const Ranks& ranks = {});
int64_t largest_batch(ModelConfig config, DType dtype, Side side, int64_t bytes,
                      const Ranks& ranks = {});

// Runs one step on random tokens and returns the high water of allocated memory. Throws
// OutOfMemory.
int64_t measured_step(const ModelConfig& config, DType dtype, Side side);

}  // namespace tigon::convergence
