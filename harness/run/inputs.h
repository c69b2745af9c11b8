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

// Fills `values` (row-major, of the given shape) with the named distribution; `binding` has axes
// and options. Distributions and their parameters (default):
//   normal       mean (0) + scale (1) * N(0, 1)
//   outliers     normal, every element with probability `share` (0.01) times `factor` (30)
//   mixed_rows   normal, of which row 4i is 0, row 4i+1 times 1e-3, row 4i+2 times 16
//   rotary_cos, rotary_sin     of the angle row * theta^(-2 column / D), theta (10000)
//   confident    normal, plus `margin` (12) at the column that `targets` chooses for the row
//   last_block   normal, plus `margin` (30) in the last column
//   first_column / last_row    normal, but with `value` in column 0 / in the row's first column of
//                the last row
//   targets      integers in [0, V); with probability `ignored` (0) the option ignore_index; with
//                probability `invalid` (0) a value outside [0, V)
// Values are not rounded yet. Throws std::logic_error for an unknown name.
void fill(const InputPlan& plan, uint64_t seed, const std::vector<int64_t>& shape,
          const Binding& binding, std::vector<double>* values);

// The plan of a tensor in an input set: its own entry, else normal(0, 1).
InputPlan plan_of(const InputSet& set, const std::string& tensor);

}  // namespace tigon
