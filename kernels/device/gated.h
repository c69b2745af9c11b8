// What swiglu and geglu share: where gate and up are, and multipliers.
#pragma once
#include "kernels/device/device.h"
#include "kernels/device/mutant.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/gated.h"

namespace tigon {

// True when a and b are gate and up of [T, F] in this layout.
template <class T>
bool has_halves(const View<T, 2>& a, const View<T, 2>& b, GateLayout layout, int64_t t, int64_t f) {
  if (layout == GateLayout::kSeparate) return has_shape(a, t, f) && has_shape(b, t, f);
  return has_shape(a, t, 2 * f) && b.size() == 0;
}

// Makes a the gate and b the up half, both [T, F], whatever the layout was.
template <class T>
void take_halves(View<T, 2>* a, View<T, 2>* b, GateLayout layout) {
  if (layout == GateLayout::kSeparate) return;
  const int64_t f = a->shape[1] / 2;
  View<T, 2> first = *a, second = *a;
  first.shape[1] = second.shape[1] = f;
  if (second) second.data += f;
  const bool up_first = (layout == GateLayout::kUpFirst) != planted("gated.halves_swapped");
  *a = up_first ? second : first;
  *b = up_first ? first : second;
}

// Calls run.operator()<whether there are multipliers>(): without them a kernel has none of their
// instructions and registers.
template <class Run>
Status with_multipliers(const GatedOptions& o, const Run& run) {
  return o.gate_multiplier != 1.0f || o.down_multiplier != 1.0f ? run.template operator()<true>()
                                                                : run.template operator()<false>();
}

}  // namespace tigon
