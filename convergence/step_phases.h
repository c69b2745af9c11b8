// SPDX-License-Identifier: Apache-2.0
// The phases of a training step, which are the lifetimes of its buffers: forward of each layer, the
// losses, backward of each layer from the last to the first, the update.
#pragma once
#include "convergence/model_config.h"

namespace tigon::convergence {

struct StepPhases {
  explicit StepPhases(const ModelConfig& config) : layers(config.layers), frozen(config.frozen) {}

  int last_layer() const { return layers - 1; }
  int loss() const { return layers; }
  int backward(int layer) const { return 2 * layers - layer; }
  int update() const { return 2 * layers + 1; }
  // The last phase that reads the activations of a layer.
  int last_read(int layer) const { return frozen ? layer : backward(layer); }

  int layers;
  bool frozen;
};

}  // namespace tigon::convergence
