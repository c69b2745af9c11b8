// SPDX-License-Identifier: Apache-2.0
#include "harness/ops/norm_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"
#include "reference/rounding.h"

namespace tigon::rms_norm {

namespace {

// The options of a forward.
struct Cast {
  Casting casting;
  float offset;
};

// What a number without its sign may be. Kernels may keep more bits than float on the way, which
// decides where a product lies near the middle of two values of the element type.
struct Range {
  double least, most;
  static Range around(double v) { return {v * (1 - kApart), v * (1 + kApart)}; }
  Range times(const Range& other) const {
    return {least * other.least * (1 - kApart), most * other.most * (1 + kApart)};
  }
  Range rounded(DType elem) const {
    return {reference::rounded(least, elem), reference::rounded(most, elem)};
  }
  static constexpr double kApart = 0x1p-20;
};

// An element of y as kernels/norm/casting.h says; of what it may be the one next to `got`.
double cast_product(const Cast& cast, double x, double rstd, double gain, double got, DType elem) {
  Range scale = Range::around(rstd), gains = Range::around(std::abs(gain));
  if (cast.casting == Casting::kNone) {
    scale = scale.rounded(elem);
    gains = gains.rounded(elem);
  }
  Range normal = scale.times({std::abs(x), std::abs(x)});
  if (cast.casting != Casting::kGemma) normal = normal.rounded(elem);
  const Range y = normal.times(gains).rounded(elem);
  const double sign = std::copysign(1.0, x) * std::copysign(1.0, gain);
  return sign * std::clamp(sign * got, y.least, y.most);
}

HostTensor cast_products(const Experiment& e, const HostTensor& x, const HostTensors& outputs) {
  const Cast cast = {static_cast<Casting>(e.option(e.base(), "casting")),
                     static_cast<float>(e.option(e.base(), "offset"))};
  const auto w = e.base().inputs.find("w");
  const HostTensor& rstd = outputs.at("rstd");
  HostTensor y = outputs.at("y");
  const size_t columns = y.values.size() / std::max<size_t>(1, rstd.values.size());
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double gain =
        w != e.base().inputs.end() ? cast.offset + w->second.values[i % columns] : 1;
    y.values[i] =
        cast_product(cast, x.values[i], rstd.values[i / columns], gain, y.values[i], y.dtype);
  }
  return y;
}

}  // namespace

Property casting(std::string normalised) {
  const auto check = [=](Experiment& e) {
    const HostTensors& outputs = e.base_outputs();
    const auto stored = outputs.find(normalised);
    const HostTensor& x = stored != outputs.end() ? stored->second : e.base().inputs.at(normalised);
    expect_same("y", outputs.at("y"), cast_products(e, x, outputs), "as computed",
                "as cast, from its rstd");
  };
  Property property = {
      "casting",
      fmt::format(
          "y is the product of {}, rstd and weight with the roundings that casting says, to "
          "the bit where they decide it",
          normalised),
      check};
  property.of_fused = true;  // who keeps more bits is nearer to the formula
  return for_policies(
      {DType::kBF16, DType::kF16},
      with_options(
          {{}, {{"casting", "gemma"}, {"offset", "1"}}, {{"casting", "none"}, {"offset", "1"}}},
          property));
}

}  // namespace tigon::rms_norm
