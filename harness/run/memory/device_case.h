// SPDX-License-Identifier: Apache-2.0
// A case in device memory: its tensors and workspace, guarded, and calls on them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/judging/oracle.h"
#include "harness/run/memory/arena.h"
#include "harness/run/memory/stop.h"

namespace tigon {

// An implementation's outputs by tensor name, packed.
using OutputBytes = std::map<std::string, std::vector<std::byte>>;

// "3,17": the element's indices.
std::string index_text(const std::vector<int64_t>& shape, size_t element);

// Where tensors lie, by name: elements off their alignment, elements between their rows, and
// outputs that take the place of an input. What is not named lies as the case says.
struct Layout {
  std::map<std::string, int> shift = {}, gap = {};
  std::map<std::string, std::string> memory_of = {};
};

class DeviceCase {
 public:
  // Allocates, asks for the workspace and prepares the implementation. `problem` must outlive it.
  // Throws Stop, and Refused for a status.
  explicit DeviceCase(const Problem& problem, Layout layout = {});

  // Another problem of the same shapes and options, whose inputs the next calls take.
  void use(const Problem& problem) { problem_ = &problem; }

  // One call over poisoned outputs; returns the outputs. The lowest bit of `round` chooses poison
  // and guards, all of it the executor's order. Throws Stop.
  OutputBytes run(int round, double* seconds = nullptr);

  // The same in steps. fill() uploads inputs and poisons the rest, call() only enqueues.
  void fill(int round);
  void call(Stream stream);
  OutputBytes collect();
  const Bound& bound() const { return bound_; }

 private:
  ArenaTensor& memory(const CaseTensor& t);
  bool is_overwritten(const CaseTensor& t) const;

  const Problem* problem_;
  Layout layout_;
  std::map<std::string, ArenaTensor> tensors_;
  std::optional<ArenaTensor> workspace_;
  Bound bound_;
};

}  // namespace tigon
