// SPDX-License-Identifier: Apache-2.0
// First a run, then a capture, then replays.
#include "convergence/step_graph.h"

#include "convergence/converge.h"

namespace tigon::convergence {

// Of the first replay, too: memory that a graph allocates may not be there.
bool StepGraphs::capture(Sequence& sequence, Stream stream, const std::function<void()>& launches) {
  try {
    sequence.graph.capture(stream, [launches](Stream) { launches(); });
    sequence.graph.replay(stream);
    return true;
  } catch (const DeviceError& error) {
    refusal_ = error.what();
  } catch (const ConvergeError& error) {
    refusal_ = error.what();
  }
  release();
  return false;
}

void StepGraphs::run(int number, Stream stream, const std::function<void()>& launches) {
  Sequence& sequence = sequences_[number];
  if (sequence.captured) return sequence.graph.replay(stream);
  const bool first = !sequence.has_run;
  sequence.has_run = true;
  if (!first && refusal_.empty()) sequence.captured = capture(sequence, stream, launches);
  if (!sequence.captured) launches();
}

void StepGraphs::release() {
  for (auto& [number, sequence] : sequences_) {
    sequence.graph = Graph();
    sequence.captured = false;
  }
}

std::string StepGraphs::how() const {
  return refusal_.empty() ? "CUDA graph" : "one by one: " + refusal_;
}

}  // namespace tigon::convergence
