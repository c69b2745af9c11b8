// SPDX-License-Identifier: Apache-2.0
// What tests of losses share: values in device memory, drawn ones, and a call with its scratch.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/device/runtime.h"
#include "kernels/signature/status.h"

namespace tigon::testing_support {

// A copy of host values in device memory, with the same offset from a 256-byte boundary for all.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values, int64_t offset = 0)
      : count_(values.size()),
        offset_(static_cast<size_t>(offset)),
        buffer_((count_ + offset_) * sizeof(T)) {
    if (count_ > 0) device_upload(data(), values.data(), count_ * sizeof(T));
  }
  T* data() const { return buffer_.template as<T>() + offset_; }
  std::vector<T> download() const {
    std::vector<T> values(count_);
    device_synchronize();
    if (count_ > 0) device_download(values.data(), data(), count_ * sizeof(T));
    return values;
  }

 private:
  size_t count_, offset_;
  DeviceBuffer buffer_;
};

template <class T>
std::vector<T> random_values(size_t count, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<T> values(count);
  for (T& v : values) v = T(normal(random));
  return values;
}

// Runs a pass with the scratch that its workspace() asks for, and waits.
template <class Args, class Run>
void launch(Args& a, Run run) {
  const DeviceBuffer scratch(workspace(a));
  a.scratch = {scratch.data(), scratch.bytes()};
  const Status status = run(a, nullptr);
  ASSERT_TRUE(status.ok()) << status.reason;
  device_synchronize();
}

// Targets in [0, V), every third one ignore_index.
inline std::vector<int64_t> random_targets(int64_t rows, int64_t columns, int64_t ignore_index) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> uniform(0, columns - 1);
  std::vector<int64_t> targets(static_cast<size_t>(rows));
  for (size_t i = 0; i < targets.size(); ++i)
    targets[i] = i % 3 == 1 ? ignore_index : uniform(random);
  return targets;
}

// Also where both are NaN.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace tigon::testing_support
