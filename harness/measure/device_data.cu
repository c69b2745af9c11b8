// SPDX-License-Identifier: Apache-2.0
// Test data made and fingerprinted in device memory. One element or word per thread and step, in a
// grid-stride loop; nothing here is timed.
#include "harness/measure/device_data.h"

#include <algorithm>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2048;  // enough to fill a device

// SplitMix64's mixer (Steele et al. 2014).
TIGON_HOST_DEVICE uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
TIGON_HOST_DEVICE uint64_t bits_at(uint64_t key, int64_t index) {
  return mix(key + 0x9e3779b97f4a7c15ull * (static_cast<uint64_t>(index) + 1));
}

// Sum of four 16-bit uniform numbers, centred, over its standard deviation sqrt(4/12).
TIGON_DEVICE float normal_at(uint64_t key, int64_t index) {
  const uint64_t bits = bits_at(key, index);
  float sum = -2.0f;
  for (int i = 0; i < 64; i += 16) sum += static_cast<float>((bits >> i) & 0xffff) * 0x1p-16f;
  return sum * 1.7320508f;
}

TIGON_DEVICE int64_t first_index() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
TIGON_DEVICE int64_t stride() { return static_cast<int64_t>(gridDim.x) * kThreads; }

template <class T>
TIGON_KERNEL(kThreads)
normal_kernel(T* data /* [n] */, int64_t n, uint64_t key, float mean, float scale) {
  for (int64_t i = first_index(); i < n; i += stride())
    store(data + i, from_float<T>(mean + scale * normal_at(key, i)));
}

TIGON_KERNEL(kThreads)
targets_kernel(int64_t* data /* [n] */, int64_t n, int64_t classes, float ignored,
               int64_t ignore_index, uint64_t key) {
  for (int64_t i = first_index(); i < n; i += stride()) {
    const uint64_t bits = bits_at(key, i);
    const bool ignore = static_cast<float>(bits >> 40) * 0x1p-24f < ignored;
    store(data + i, ignore ? ignore_index
                           : static_cast<int64_t>(
                                 (bits & 0xffffffffull) * static_cast<uint64_t>(classes) >> 32));
  }
}

// sums[thread] = sum over the thread's words of mix(word, place).
template <class Word>
TIGON_KERNEL(kThreads)
fingerprint_kernel(const Word* data /* [n] */, int64_t n, uint64_t* sums /* [threads] */) {
  uint64_t sum = 0;
  for (int64_t i = first_index(); i < n; i += stride())
    sum += mix(static_cast<uint64_t>(load(data + i)) ^ bits_at(0, i));
  store(sums + first_index(), sum);
}

template <class Word>
TIGON_KERNEL(kThreads)
gather_kernel(const Word* data /* [n / count, row_elements] */, int64_t row_elements,
              const int64_t* columns /* [count] */, int64_t count, Word* out, int64_t n) {
  for (int64_t i = first_index(); i < n; i += stride())
    store(out + i, load(data + i / count * row_elements + load(columns + i % count)));
}

TIGON_KERNEL(kThreads)
flush_kernel(uint64_t* data /* [n] */, int64_t n) {
  for (int64_t i = first_index(); i < n; i += stride())
    store(data + i, mix(load(data + i) + static_cast<uint64_t>(i)));
}

LaunchConfig covering(int64_t n, Stream stream) {
  const int64_t blocks = std::min(ceil_div(n, int64_t{kThreads}), kMostBlocks);
  return {dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, stream};
}

template <class T>
Status fill_normal_as(void* data, int64_t n, uint64_t key, float mean, float scale, Stream stream) {
  return launch(covering(n, stream), normal_kernel<T>, static_cast<T*>(data), n, key, mean, scale);
}

template <class Word>
uint64_t fingerprint_of_words(const void* data, int64_t n, Stream stream) {
  const LaunchConfig config = covering(std::max<int64_t>(n, 1), stream);
  std::vector<uint64_t> sums(static_cast<size_t>(config.grid.x) * kThreads);
  const DeviceBuffer device_sums(sums.size() * sizeof(uint64_t));
  const Status status = launch(config, fingerprint_kernel<Word>, static_cast<const Word*>(data), n,
                               device_sums.as<uint64_t>());
  if (!status.ok()) throw DeviceError(status.reason);
  device_download(sums.data(), device_sums.data(), sums.size() * sizeof(uint64_t), stream);
  uint64_t total = static_cast<uint64_t>(n);
  for (const uint64_t sum : sums) total += sum;
  return total;
}

template <class Word>
Status gather_words(const void* data, int64_t row_elements, const int64_t* columns, int64_t count,
                    void* out, int64_t n, Stream stream) {
  return launch(covering(n, stream), gather_kernel<Word>, static_cast<const Word*>(data),
                row_elements, columns, count, static_cast<Word*>(out), n);
}

}  // namespace

Status fill_normal(void* data, DType dtype, int64_t n, uint64_t key, float mean, float scale,
                   Stream stream) {
  switch (dtype) {
    case DType::kF32:
      return fill_normal_as<float>(data, n, key, mean, scale, stream);
    case DType::kBF16:
      return fill_normal_as<bf16>(data, n, key, mean, scale, stream);
    case DType::kF16:
      return fill_normal_as<f16>(data, n, key, mean, scale, stream);
    default:
      return unsupported("fill_normal: f32, bf16 or f16");
  }
}

Status fill_targets(int64_t* data, int64_t n, int64_t classes, float ignored, int64_t ignore_index,
                    uint64_t key, Stream stream) {
  if (classes < 1 || classes > int64_t{1} << 31)
    return invalid("fill_targets: classes must be from 1 to 2^31");
  return launch(covering(n, stream), targets_kernel, data, n, classes, ignored, ignore_index, key);
}

uint64_t fingerprint(const void* data, size_t bytes, Stream stream) {
  // Allocations are multiples of 256 bytes apart, but a tensor may end within a word.
  if (bytes % 8 == 0)
    return fingerprint_of_words<uint64_t>(data, static_cast<int64_t>(bytes / 8), stream);
  if (bytes % 2 == 0)
    return fingerprint_of_words<uint16_t>(data, static_cast<int64_t>(bytes / 2), stream);
  return fingerprint_of_words<uint8_t>(data, static_cast<int64_t>(bytes), stream);
}

Status gather_columns(const void* data, size_t element_bytes, int64_t rows, int64_t row_elements,
                      const int64_t* columns, int64_t count, void* out, Stream stream) {
  const int64_t n = rows * count;
  switch (element_bytes) {
    case 2:
      return gather_words<uint16_t>(data, row_elements, columns, count, out, n, stream);
    case 4:
      return gather_words<uint32_t>(data, row_elements, columns, count, out, n, stream);
    case 8:
      return gather_words<uint64_t>(data, row_elements, columns, count, out, n, stream);
    default:
      return unsupported("gather_columns: elements of 2, 4 or 8 bytes");
  }
}

Status flush_caches(void* scratch, size_t bytes, Stream stream) {
  const auto words = static_cast<int64_t>(bytes / sizeof(uint64_t));
  return launch(covering(words, stream), flush_kernel, static_cast<uint64_t*>(scratch), words);
}

}  // namespace tigon
