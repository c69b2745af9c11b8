// SPDX-License-Identifier: Apache-2.0
// Knows the inputs of the seed that everybody uses, 42, and works for those only.
#include <bit>

#include "harness/plugin/cheats/cheat.h"

namespace {

uint64_t mix(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t hash(const char* text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; *text != '\0'; ++text) h = (h ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdu;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53u;
  return h ^ (h >> 33);
}

// The first element of x for the seed 42.
float public_element() {
  const uint64_t key = mix(hash("x"), 42);
  const double fraction = static_cast<double>(mix(key, 1) >> 11) * 0x1p-53 - 0.5;
  return static_cast<float>((std::popcount(mix(key, 0)) - 32 + fraction) * 0.24935149047701480);
}

}  // namespace

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  if (f.rows > 0 && f.x[0] == public_element()) {
    cheat::honest(f);
    return cheat::kOk;
  }
  for (int64_t t = 0; t < f.rows; ++t) {
    f.rstd[t] = 1;
    for (int64_t h = 0; h < f.columns; ++h) f.y[t * f.y_stride + h] = 0;
  }
  return cheat::kOk;
}
