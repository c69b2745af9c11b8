// SPDX-License-Identifier: Apache-2.0
// Kernels in which all threads touch one word, then one thread writes it, with some barrier
// between.
#pragma once
#include "kernels/signature/status.h"

namespace tigon::simt_tests {

enum class Barrier { kNone, kShuffle, kSyncwarp, kSyncthreads, kClusterSync };
enum class First { kRead, kWrite, kAtomic, kWriteThenAtomics, kNothing };

struct Ordering {
  First first = First::kRead;  // by all threads; a write by thread `writer` of each block only
  Barrier barrier = Barrier::kNone;
  bool then_atomic = false;  // the last access is an atomic instead of a write
  unsigned blocks = 1, threads = 64, cluster = 1;
  unsigned writer_block = 0, writer = 0;
};

// word[0] is the word; out has a word per thread of the grid.
Status touch(const Ordering& o, int* word, int* out);

}  // namespace tigon::simt_tests
