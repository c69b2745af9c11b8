// SPDX-License-Identifier: Apache-2.0
// Memory of the host executor: plain host memory, or memory of the checker's arena with red zones
// where accesses are checked.
#pragma once
#include <cstddef>

namespace tigon::simt {

// A multiple of 256; nullptr when there is none left.
void* memory_allocate(size_t bytes);
void memory_free(void* p, size_t bytes);
// Memory of which only a small part will be touched, and no more than that part is taken; where
// accesses are not checked. nullptr when there are no addresses left.
void* memory_reserve(size_t bytes);
void memory_release(void* p, size_t bytes);
// In a process that does not check accesses, after watch_prefetches(): whether this lies within
// what memory_allocate() or memory_reserve() gave.
bool may_prefetch(const void* p, size_t bytes);
// What the checker believes about the contents.
void memory_mark(void* p, size_t bytes, bool initialized);

// Shared memory of the blocks of a cluster. Throws std::bad_alloc.
char* shared_arena_allocate(size_t bytes);
void shared_arena_free(char* p, size_t bytes);

}  // namespace tigon::simt
