// SPDX-License-Identifier: Apache-2.0
// Computes an f32 kernel in bf16.
#include "harness/plugin/cheats/cheat.h"

namespace {

float through_bf16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  bits = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  std::memcpy(&v, &bits, sizeof bits);
  return v;
}

}  // namespace

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  cheat::honest(f);
  for (int64_t t = 0; t < f.rows; ++t)
    for (int64_t h = 0; h < f.columns; ++h)
      f.y[t * f.y_stride + h] = through_bf16(f.y[t * f.y_stride + h]);
  return cheat::kOk;
}
