// SPDX-License-Identifier: Apache-2.0
// Device memory of the host executor: plain host memory in the fast flavour, memory of the
// checker's arena with red zones in the other.
#pragma once
#include <cstddef>

namespace tigon::simt {

// A multiple of 256; nullptr when there is none left.
void* memory_allocate(size_t bytes);
void memory_free(void* p, size_t bytes);
// What the checker believes about the contents.
void memory_mark(void* p, size_t bytes, bool initialized);

}  // namespace tigon::simt
