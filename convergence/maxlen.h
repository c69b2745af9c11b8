// SPDX-License-Identifier: Apache-2.0
// How long a sequence and how large a batch of a model fit into memory, planned without a GPU.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "convergence/converge.h"

namespace tigon::convergence {

// Bytes of a training step of one device.
struct StepMemory {
  int64_t state = 0;        // weights, gradients, master weights and the optimizer's two moments
  int64_t activations = 0;  // the rest of the arena
  int64_t transient = 0;    // largest intermediates that the naive side allocates beside the arena
  int64_t total() const { return state + activations + transient; }
};

// Of config.sequence and config.batch; bf16 or f32. `devices` share the state evenly (as ZeRO-3 and
// FSDP do; what they gather on the way is not counted), each with a batch of its own.
StepMemory planned_step(const ModelConfig& config, DType dtype, Side side, int devices = 1);
// With those of op_names() as kernels.
StepMemory planned_step(const ModelConfig& config, DType dtype,
                        const std::vector<std::string>& kernels, int devices = 1);

// StepMemory::transient: what the chain of head and cross entropy holds at its peak; 0 when it is
// a kernel. No other op comes near it where V is much larger than H.
int64_t planned_intermediates(const ModelConfig& config, DType dtype,
                              const std::vector<std::string>& kernels);

// Longest sequence for config.batch, or largest batch for config.sequence, whose step fits into
// `bytes`; 0 when not even 1 does.
int64_t longest_sequence(ModelConfig config, DType dtype, Side side, int64_t bytes, int devices);
int64_t largest_batch(ModelConfig config, DType dtype, Side side, int64_t bytes, int devices);

// Runs one step on random tokens and returns the high water of allocated memory. Throws
// OutOfMemory.
int64_t measured_step(const ModelConfig& config, DType dtype, Side side);

}  // namespace tigon::convergence
