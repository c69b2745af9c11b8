// SPDX-License-Identifier: Apache-2.0
// Test data: named distributions over a counter-based generator keyed by (seed, tensor name,
// index), so that every machine, device and number of threads sees the same values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

// 64 random bits of element `index` of the stream `key` (Steele et al. 2014, SplitMix64's mixer).
uint64_t random_bits(uint64_t key, uint64_t index);

// Key of a tensor's stream.
uint64_t stream_key(uint64_t seed, const std::string& tensor);

// Element `index`, standard normal to within 1% of the density, |value| <= 8; made of additions and
// one product only, so that it has the same bits everywhere.
double random_normal(uint64_t key, uint64_t index);

// Uniform in [0, 1).
double random_uniform(uint64_t key, uint64_t index);

// Fills `values` (row-major, of the given shape) with a distribution of distributions.h; `binding`
// has axes and options, `dtype` is what the values will be stored as. They are not rounded yet.
// Throws std::logic_error for an unknown name.
void fill(const InputPlan& plan, uint64_t seed, const std::vector<int64_t>& shape,
          const Binding& binding, std::vector<double>* values, DType dtype = DType::kF32);

// The input set of this name. Throws UsageError if the op has none.
const InputSet& input_set(const OpSpec& op, const std::string& name);

// The plan of a tensor in an input set: its own entry, else normal(0, 1).
InputPlan plan_of(const InputSet& set, const std::string& tensor);

// How a tensor may be filled where only the distribution counts, because it is too large to be made
// value by value on the host: by random numbers of whoever has its memory.
struct QuickFill {
  enum Kind { kNormal, kIndices, kNone };  // kNone: only fill() makes it
  Kind kind = kNone;
  double mean = 0, scale = 1;           // of kNormal
  int64_t below = 0, ignore_index = 0;  // of kIndices: uniform in [0, below), or
  double ignored = 0;                   // with this probability ignore_index
};
QuickFill quick_fill(const InputPlan& plan, const Binding& binding);

}  // namespace tigon
