// SPDX-License-Identifier: Apache-2.0
// What the instrumentation of kernel code calls in the end.
#pragma once
#include <cstddef>

#include "kernels/simt/check.h"

namespace tigon::simt {

// For the checker.
void note_access(const void* p, size_t bytes, bool write, const void* pc);

// An access of kernel code, or of host code in the same file, which is not looked at.
inline void on_access(const void* p, size_t bytes, bool write, const void* pc) {
  if (check::enabled) note_access(p, bytes, write, pc);
}

}  // namespace tigon::simt
