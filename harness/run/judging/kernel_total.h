// SPDX-License-Identifier: Apache-2.0
// What all kernels of a call counted together.
#pragma once
#include <vector>

#include "harness/run/check.h"

namespace tigon {

inline KernelTrace total(const std::vector<KernelTrace>& kernels) {
  KernelTrace sum;
  for (const KernelTrace& k : kernels) {
    sum.launches += k.launches;
    sum.bytes_loaded += k.bytes_loaded;
    sum.bytes_stored += k.bytes_stored;
    sum.requests += k.requests;
    sum.sectors += k.sectors;
    sum.bank_conflicts += k.bank_conflicts;
    sum.barriers += k.barriers;
    sum.atomics += k.atomics;
  }
  return sum;
}

}  // namespace tigon
