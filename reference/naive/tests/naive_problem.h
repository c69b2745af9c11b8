// SPDX-License-Identifier: Apache-2.0
// Device arrays with their first contents, comparison and the typed suite of the baselines' tests.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/device/runtime.h"
#include "kernels/signature/signature.h"

namespace tigon::naive {

using Values = std::vector<double>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A device array with a copy of its first contents, as stored, in double.
template <class T>
class Data {
 public:
  explicit Data(const Values& values) : buffer_(std::max<size_t>(1, values.size()) * sizeof(T)) {
    std::vector<T> stored;
    for (double v : values) stored.push_back(T(v));
    size_ = stored.size();
    if (size_ > 0) device_upload(buffer_.data(), stored.data(), size_ * sizeof(T));
    host_ = now();
  }
  explicit Data(size_t size) : Data(Values(size, -77.0)) {}  // an output, to be overwritten

  T* device() const { return static_cast<T*>(buffer_.data()); }
  double operator[](int64_t i) const { return host_[static_cast<size_t>(i)]; }
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
  Values host_;
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

// Norm-wise: |got - want| <= bound * (largest finite |want| + |want|); NaN exactly where wanted.
inline void expect_close(const Values& got, const Values& want, double bound, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double scale = 0;
  for (double w : want)
    if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
  int wrong = 0;
  std::ostringstream message;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool both_nan = std::isnan(got[i]) && std::isnan(want[i]);
    if (both_nan || std::abs(got[i] - want[i]) <= bound * scale) continue;
    if (++wrong <= 5) message << "\n  [" << i << "] got " << got[i] << ", want " << want[i];
  }
  EXPECT_EQ(wrong, 0) << what << ": " << wrong << " of " << got.size()
                      << " elements are wrong, largest is " << scale << message.str();
}

// Of one storage type: fixtures of the typed suites derive from it.
template <class P>
struct OfPolicy : testing::Test {
  using Elem = typename P::Elem;
  static constexpr double kUnit = unit_roundoff(dtype_of<Elem>);
  static constexpr double kBound = 8 * kUnit + 2e-6;  // of values rounded a few times
};
using Policies = testing::Types<F32, BF16, F16>;
struct PolicyName {
  template <class P>
  static std::string GetName(int) {
    return name_of(dtype_of<typename P::Elem>);
  }
};

// Rows of H elements, `pitch` apart.
struct Rows {
  int64_t t, h, pitch;
};
template <class T>
View<T, 2> rows(T* data, const Rows& r) {
  View<T, 2> v = view(data, r.t, r.h);
  v.stride[0] = r.pitch;
  return v;
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
