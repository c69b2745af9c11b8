// SPDX-License-Identifier: Apache-2.0
// GPU bodies of math.h.
#pragma once
#include "kernels/device/platform.h"

namespace tigon::device {

TIGON_DEVICE float exp(float x) { return __expf(x); }
TIGON_DEVICE float exp2_flushed(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
TIGON_DEVICE float exp_flushed(float x) { return exp2_flushed(x * 1.44269504f); }
TIGON_DEVICE float exp2(float x) {
  float r;
  asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
TIGON_DEVICE float rough_log2(float x) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
TIGON_DEVICE float divide(float a, float b) {
  float r;
  asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(b));
  return a * r;
}
TIGON_DEVICE float divide_normal(float a, float b) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  return a * r;
}
TIGON_DEVICE float tanh(float x) { return tanhf(x); }

}  // namespace tigon::device
