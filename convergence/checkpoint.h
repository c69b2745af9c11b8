// SPDX-License-Identifier: Apache-2.0
// State of a training on disk: weights, master weights, the optimizer's moments and how far it is.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/signature/dtype.h"

namespace tigon::convergence {

// A tensor of the training's state where it lies in device memory.
struct StateTensor {
  std::string name;  // "weight.layers.0.qkv", "master. ...", "adam_m. ...", "adam_v. ..."
  DType type;
  int64_t rows, columns;
  void* data;
  size_t bytes() const;
};

// What is no tensor. The data position is the step: a batch depends on nothing but seed and step.
struct Progress {
  std::string identity;      // what is trained, on what, from which seeds
  std::vector<double> loss;  // one per finished step
};

// Replaces the file in one go; holds at most a few megabytes of host memory. Throws
// ConvergeError(5).
void save_checkpoint(const std::filesystem::path& path, const std::vector<StateTensor>& state,
                     const Progress& progress);

// Fills the tensors and returns the losses so far. Throws ConvergeError(2) when the file is
// damaged or of another training than `identity`.
Progress load_checkpoint(const std::filesystem::path& path, const std::vector<StateTensor>& state,
                         const std::string& identity);

}  // namespace tigon::convergence
