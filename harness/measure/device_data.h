// SPDX-License-Identifier: Apache-2.0
// Test data made and fingerprinted in device memory: a sweep's tensors are too large to make on the
// host and send.
#pragma once
#include <cstdint>

#include "kernels/signature/dtype.h"
#include "kernels/signature/status.h"

namespace tigon {

// n elements of f32, bf16 or f16: mean + scale * z, z a sum of four uniform numbers with mean 0 and
// variance 1. The same values for the same key.
Status fill_normal(void* data, DType dtype, int64_t n, uint64_t key, float mean, float scale,
                   Stream stream);

// n class indices, uniform in [0, classes); with probability `ignored` ignore_index instead.
Status fill_targets(int64_t* data, int64_t n, int64_t classes, float ignored, int64_t ignore_index,
                    uint64_t key, Stream stream);

// A 64-bit fingerprint of the bytes: differs when any bit or the place of any word differs, but for
// a chance of 2^-64. Waits for the stream. Throws DeviceError.
uint64_t fingerprint(const void* data, size_t bytes, Stream stream);

// Writes and reads `bytes` of memory, which displaces whatever the caches hold.
Status flush_caches(void* scratch, size_t bytes, Stream stream);

}  // namespace tigon
