// What rms_norm's casting means for the budget of y, for every contract that has it.
#pragma once
#include "harness/spec/op_spec.h"
#include "reference/rms_norm.h"

namespace tigon::rms_norm {

// Rounded is y; with llama x * rstd, too; with none also rstd and offset + w.
inline const Expr kCastingRoundings{"(casting=llama ? 2 : casting=none ? 4 : 1)",
                                    [](const Binding& b) {
                                      const auto casting = static_cast<Casting>(b.at("casting"));
                                      if (casting == Casting::kNone) return 4.0;
                                      return casting == Casting::kLlama ? 2.0 : 1.0;
                                    }};

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
