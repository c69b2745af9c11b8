// SPDX-License-Identifier: Apache-2.0
// Test data and fingerprints in device memory, and the streams of the ceilings.
#include "harness/measure/device_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/measure/stream_kernels.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

template <class T>
std::vector<T> download(const DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  device_download(values.data(), buffer.data(), buffer.bytes());
  return values;
}

TEST(DeviceData, normal_values_have_the_mean_and_the_deviation) {
  constexpr int64_t kCount = 20000;
  const DeviceBuffer buffer(kCount * sizeof(float));
  ASSERT_TRUE(fill_normal(buffer.data(), DType::kF32, kCount, 1, 3.0f, 2.0f, nullptr).ok());
  double sum = 0, squares = 0;
  for (const float x : download<float>(buffer)) {
    sum += x;
    squares += (x - 3.0) * (x - 3.0);
  }
  EXPECT_NEAR(sum / kCount, 3.0, 5 * 2 / std::sqrt(kCount));
  EXPECT_NEAR(std::sqrt(squares / kCount), 2.0, 0.05);
}

TEST(DeviceData, targets_are_classes_or_ignored_in_the_share_asked_for) {
  constexpr int64_t kCount = 20000, kClasses = 7;
  const DeviceBuffer buffer(kCount * sizeof(int64_t));
  ASSERT_TRUE(fill_targets(buffer.as<int64_t>(), kCount, kClasses, 0.25f, -100, 5, nullptr).ok());
  std::vector<int> counts(kClasses);
  int ignored = 0;
  for (const int64_t t : download<int64_t>(buffer)) {
    if (t == -100) {
      ++ignored;
      continue;
    }
    ASSERT_TRUE(t >= 0 && t < kClasses) << t;
    ++counts[static_cast<size_t>(t)];
  }
  EXPECT_NEAR(ignored, kCount / 4, 400);
  for (const int count : counts) EXPECT_NEAR(count, kCount * 0.75 / kClasses, 300);
}

TEST(DeviceData, fingerprint_sees_one_bit_and_two_words_that_changed_places) {
  std::vector<uint16_t> words(1001);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i);
  const DeviceBuffer buffer(words.size() * sizeof(uint16_t));
  const auto fingerprint_now = [&] {
    device_upload(buffer.data(), words.data(), buffer.bytes());
    return fingerprint(buffer.data(), buffer.bytes(), nullptr);
  };
  const uint64_t first = fingerprint_now();
  EXPECT_EQ(first, fingerprint_now());
  words[500] ^= 1;
  EXPECT_NE(first, fingerprint_now());
  words[500] ^= 1;
  std::swap(words[1], words[1000]);
  EXPECT_NE(first, fingerprint_now());
}

TEST(StreamKernels, copy_and_triad_move_every_piece) {
  constexpr int64_t kPieces = 777;  // no multiple of a block
  const size_t bytes = kPieces * 16;
  const DeviceBuffer a(bytes), b(bytes), c(bytes);
  ASSERT_TRUE(fill_normal(a.data(), DType::kF32, kPieces * 4, 1, 0, 1, nullptr).ok());
  ASSERT_TRUE(stream_copy(b.data(), a.data(), kPieces, nullptr).ok());
  EXPECT_EQ(download<float>(a), download<float>(b));
  ASSERT_TRUE(stream_triad(c.data(), a.data(), b.data(), kPieces, nullptr).ok());
  const auto x = download<float>(a), sum = download<float>(c);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(sum[i], x[i] + x[i]);
  EXPECT_TRUE(stream_read(b.data(), a.data(), kPieces, nullptr).ok());
}

}  // namespace
}  // namespace tigon
