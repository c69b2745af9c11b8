// SPDX-License-Identifier: Apache-2.0
// The catalogue of test data: every distribution with its name, its parameters and what it is for.
// `tigon list inputs` prints it.
#pragma once
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

// What a distribution may look at.
struct FillContext {
  const InputPlan& plan;
  uint64_t seed;
  uint64_t key;  // of the tensor's stream of random bits
  const Binding& binding;
  DType dtype;  // that the values will be stored as
  int64_t rows, columns;
  double mean = 0, scale = 1;  // of normal values, the parameters of these names

  double parameter(const std::string& name, double otherwise) const;
  int64_t below() const;  // of indices; throws std::logic_error if the plan does not say
};

struct Distribution {
  const char* name;
  double (*value)(const FillContext&, int64_t row, int64_t column);
  const char* meaning;  // with the parameters and their defaults
};

const std::vector<Distribution>& all_distributions();
const Distribution* find_distribution(const std::string& name);

}  // namespace tigon
