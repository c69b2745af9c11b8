// A case in device memory: guarded tensors and workspace, ready to be called.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/memory/arena.h"

namespace tigon {

// A verdict that ends the case early.
struct Stop {
  Verdict verdict;
  std::string reason;
};

// The same, from a status of the implementation instead of what it did.
struct Refused : Stop {};

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

class Placed {
 public:
  // Allocates, asks for the workspace and prepares the implementation. `problem` must outlive it.
  // Throws Stop,
  // and Refused for a status.
  explicit Placed(const Problem& problem, Layout layout = {});

  // Another problem of the same shapes and options, whose inputs the next calls take.
  void use(const Problem& problem) { problem_ = &problem; }

  // One call over poisoned outputs; returns the outputs. Of `round`, the lowest bit chooses poison
  // and guards and the whole the executor's order. Throws Stop.
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
