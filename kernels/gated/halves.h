// SPDX-License-Identifier: Apache-2.0
// What swiglu and geglu share: where gate and up are, and multipliers.
#pragma once
#include "kernels/device/device.h"
#include "kernels/gated/options.h"
#include "kernels/signature/checks.h"

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
  const bool up_first = layout == GateLayout::kUpFirst;
  *a = up_first ? second : first;
  *b = up_first ? first : second;
}

constexpr const char* kGatedShapes =
    "all must be [T, F] with unit stride along F; a is [T, 2F], and b empty, where layout packs "
    "them";

// Checks the shapes of a forward pass; a becomes the gate and b the up half.
template <class Args>
Status take_forward(Args* args) {
  const int64_t t = args->y.shape[0], f = args->y.shape[1];
  if (t < 0 || f < 1) return invalid("y must be [T, F] with T >= 0 and F >= 1");
  if (!has_shape(args->y, t, f) || !has_halves(args->a, args->b, args->layout, t, f))
    return invalid(kGatedShapes);
  take_halves(&args->a, &args->b, args->layout);
  return {};
}
// The same of a backward pass; da and db likewise.
template <class Args>
Status take_backward(Args* args) {
  const int64_t t = args->dy.shape[0], f = args->dy.shape[1];
  if (t < 0 || f < 1) return invalid("dy must be [T, F] with T >= 0 and F >= 1");
  if (!has_shape(args->dy, t, f) || !has_halves(args->a, args->b, args->layout, t, f) ||
      !has_halves(args->da, args->db, args->layout, t, f))
    return invalid(kGatedShapes);
  take_halves(&args->a, &args->b, args->layout);
  take_halves(&args->da, &args->db, args->layout);
  return {};
}

// Calls run.operator()<whether there are multipliers>(): without them a kernel has none of their
// instructions and registers.
template <class Run>
Status with_multipliers(const GatedOptions& o, const Run& run) {
  return o.gate_multiplier != 1.0f || o.down_multiplier != 1.0f ? run.template operator()<true>()
                                                                : run.template operator()<false>();
}

}  // namespace tigon
