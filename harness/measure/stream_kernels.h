// SPDX-License-Identifier: Apache-2.0
// The three streams whose bandwidths are ceilings: copy, read and triad.
#pragma once
#include <cstdint>

#include "kernels/signature/status.h"

namespace tigon {

// Each moves n pieces of 16 bytes per array; addresses are multiples of 16.
// to[i] = from[i]
Status stream_copy(void* to, const void* from, int64_t n, Stream stream);
// Reads all of `from`; `sink` (16 bytes) keeps the compiler from dropping it.
Status stream_read(void* sink, const void* from, int64_t n, Stream stream);
// to[i] = a[i] + b[i] in f32: two reads and a write.
Status stream_triad(void* to, const void* a, const void* b, int64_t n, Stream stream);

}  // namespace tigon
