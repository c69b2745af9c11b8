// SPDX-License-Identifier: Apache-2.0
// The launches of a training step as CUDA graphs: one call instead of hundreds of launches.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "kernels/device/runtime.h"

namespace tigon::convergence {

// Sequences of launches that are the same in every step: each runs as it is the first time, when
// libraries choose and compile, and is captured the second time; from then on it is replayed. What
// changes from step to step they read from device memory. Replays give the bits of the launches.
class StepGraphs {
 public:
  // `refusal`: why nothing is captured; empty to capture.
  explicit StepGraphs(std::string refusal) : refusal_(std::move(refusal)) {}

  // Runs the sequence of that number. `launches` is called again after this returns on the host
  // executor, may not synchronise, and throws DeviceError or ConvergeError, which in a capture
  // leads to launches one by one from here on. The stream is not the default one.
  void run(int sequence, Stream stream, const std::function<void()>& launches);

  // Gives back what the graphs hold, such as memory that was allocated within them.
  void release();

  // "CUDA graph", or "one by one: " and why.
  std::string how() const;

 private:
  struct Sequence {
    bool has_run = false, captured = false;
    Graph graph;
  };
  bool capture(Sequence& sequence, Stream stream, const std::function<void()>& launches);

  std::map<int, Sequence> sequences_;
  std::string refusal_;
};

}  // namespace tigon::convergence
