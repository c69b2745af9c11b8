// SPDX-License-Identifier: Apache-2.0
// How a row that need not start on a 16-byte boundary is dealt out to the blocks of a cluster.
#pragma once
#include <cstdint>

#include "kernels/device/device.h"

namespace tigon {

// Columns of a row: `head` elements up to the first 16-byte boundary, whole vectors, and a tail.
// Vectors [first, last) belong to this block; head and tail to the first block of a cluster.
struct Slice {
  int head, tail, first, last;
};

// With a width of one element there is neither head nor tail. `blocks` is a power of two, so
// that a shift replaces a division.
template <int kWidth, class T>
TIGON_DEVICE Slice slice_of(const T* x, int columns, unsigned rank, unsigned blocks) {
  const auto misplaced = static_cast<unsigned>(reinterpret_cast<uintptr_t>(x) % 16 / sizeof(T));
  const int head = min(static_cast<int>((kWidth - misplaced) % kWidth), columns);
  const int vectors = (columns - head) / kWidth;
  const int share = (vectors + static_cast<int>(blocks) - 1) >> __popc(blocks - 1);
  const int first = min(vectors, static_cast<int>(rank) * share);
  const int last = min(vectors, first + share);
  return {head, head + vectors * kWidth, first, last};
}

// Calls f(column) for the columns of head and tail that this lane of kLanes owns.
template <int kLanes, class F>
TIGON_DEVICE void for_each_end(const Slice& s, int columns, unsigned rank, int lane, F f) {
  if (rank != 0) return;
  int count = s.head + columns - s.tail;
  for (int i = lane; i < count; i += kLanes) f(i < s.head ? i : s.tail + i - s.head);
}

}  // namespace tigon
