// SPDX-License-Identifier: Apache-2.0
// Device arrays of the baselines' tests.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/device/runtime.h"
#include "kernels/signature/signature.h"

namespace tigon::naive {

using Values = std::vector<double>;

// A device array, read and written in double.
template <class T>
class Data {
 public:
  explicit Data(const Values& values) : buffer_(std::max<size_t>(1, values.size()) * sizeof(T)) {
    std::vector<T> stored;
    for (double v : values) stored.push_back(T(v));
    size_ = stored.size();
    if (size_ > 0) device_upload(buffer_.data(), stored.data(), size_ * sizeof(T));
  }
  explicit Data(size_t size) : Data(Values(size, -77.0)) {}  // an output, to be overwritten

  T* device() const { return static_cast<T*>(buffer_.data()); }
  Values now() const {
    device_synchronize();
    std::vector<T> stored(size_);
    device_download(stored.data(), buffer_.data(), size_ * sizeof(T));
    Values values;
    for (T v : stored) values.push_back(static_cast<double>(v));
    return values;
  }

 private:
  DeviceBuffer buffer_;
  size_t size_ = 0;
};

inline Values normal(int64_t n, uint64_t seed, double scale = 1.0) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> distribution(0.0, scale);
  Values values(static_cast<size_t>(n));
  for (double& v : values) v = distribution(generator);
  return values;
}

inline void expect_ok(const Status& s) {
  ASSERT_TRUE(s.ok()) << "status " << s.code << ": " << s.reason;
}

// int64 has no conversion to the Data's doubles that matters here.
struct DeviceTargets {
  explicit DeviceTargets(const std::vector<int64_t>& y)
      : buffer(std::max<size_t>(1, y.size()) * sizeof(int64_t)) {
    if (!y.empty()) device_upload(buffer.data(), y.data(), y.size() * sizeof(int64_t));
    v = view(static_cast<const int64_t*>(buffer.data()), y.size());
  }
  DeviceBuffer buffer;
  View<const int64_t, 1> v;
};

}  // namespace tigon::naive
