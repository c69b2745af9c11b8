// SPDX-License-Identifier: Apache-2.0
// Test data made and fingerprinted in device memory: a sweep's tensors are too large to make on the
// host and send.
#pragma once
#include <cstddef>
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

// out [rows, count] = the given columns of data [rows, row_elements], elements of 2, 4 or 8 bytes.
Status gather_columns(const void* data, size_t element_bytes, int64_t rows, int64_t row_elements,
                      const int64_t* columns, int64_t count, void* out, Stream stream);

// Writes and reads `bytes` of memory, which displaces whatever the caches hold.
Status flush_caches(void* scratch, size_t bytes, Stream stream);

}  // namespace tigon
