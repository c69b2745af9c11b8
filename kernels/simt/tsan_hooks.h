// SPDX-License-Identifier: Apache-2.0
// What the instrumentation of kernel code calls in the end.
#pragma once
#include <cstddef>

namespace tigon::simt {

// An access of kernel code, or of host code in the same file, which is not looked at.
void on_access(const void* p, size_t bytes, bool write, const void* pc);

}  // namespace tigon::simt
