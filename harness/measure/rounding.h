// SPDX-License-Identifier: Apache-2.0
// The constants of the budget, measured: c0 by the elementary functions as kernels compute them,
// lambda by long sums and matrix products, each against double.
#pragma once
#include <functional>
#include <string>

namespace tigon {

class Json;

struct RoundingResult {
  std::string name, group;  // group: elementary, sum or product
  std::string range;        // of the argument, or the shape
  std::string unit;         // what `worst` is a multiple of
  double worst = 0, worst_at = 0;
  double allowed = 0;  // the smallest constant that a contract grants
  int64_t samples = 0;
};

// Measures everything on this program's executor and gives each result to `sink` as it is known.
// Throws DeviceError.
void measure_rounding(const std::function<void(const RoundingResult&)>& sink);

// As in harness/record/record.schema.json, KIND rounding.
Json to_json(const RoundingResult& result);

}  // namespace tigon
