// SPDX-License-Identifier: Apache-2.0
// What contracts of norms share: their sizes, and what rms_norm's casting means for the budget of
// y.
#pragma once
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"
#include "reference/rms_norm.h"

namespace tigon {

// The squares of 131072 of them sum to less than 3e38.
inline constexpr double kLargestInNorm = 4e16;

inline std::vector<AxisPlan> norm_axes(Axis t, Axis h) {
  return {{.axis = t,
           .tiny = {1, 3},
           .check = {0, 1, 2, 31, 33, 129, 257},
           .sweep = {1024, 2048, 4096, 8192, 16384},
           .host_sweep = {16, 64, 256},
           .huge = {525000},
           .refused = {-1},
           .most = INT32_MAX},
          {.axis = h,
           .tiny = {1, 8, 33},
           // In an order in which wide rows meet few of them (plan.cpp, each_value).
           .check = {16385, 2, 7, 8, 9, 127, 1023, 4096, 4099, 5120, 1},
           .sweep = {2048, 4096, 8192},
           .host_sweep = {512, 2048},
           .huge = {4096},
           .model_size = ModelSize::kHidden,
           .most = kAnySize}};
}

}  // namespace tigon

namespace tigon::rms_norm {

// Rounded is y; with llama x * rstd, too; with none also rstd and offset + w.
inline const Expr kCastingRoundings{"(casting=llama ? 2 : casting=none ? 4 : 1)",
                                    [](const Binding& b) {
                                      const auto casting = static_cast<Casting>(b.at("casting"));
                                      if (casting == Casting::kNone) return 4.0;
                                      return casting == Casting::kLlama ? 2.0 : 1.0;
                                    }};

// y has the bits that the casting says, beside the tensor that is normalised and the saved rstd.
Property casting(std::string normalised);

// Makes U of y and rstd, which forward has computed: factors of what is stored on the way.
inline void casting_underflow(const Forward<F64>& a) {
  const auto x = reference::array(a.x);
  const reference::Row<double> g =
      reference::rms_norm::gain<double>(a.w, a.offset, a.x.shape[1]).abs();
  for (int64_t t = 0; t < x.rows(); ++t) {
    auto y = reference::array(a.y).row(t);
    const reference::Row<double> size = x.row(t).abs();
    y = g;
    if (a.casting == Casting::kNone) y += size * g + size * a.rstd.data[t];
    a.rstd.data[t] = 1;
  }
}

}  // namespace tigon::rms_norm
