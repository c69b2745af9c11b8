// SPDX-License-Identifier: Apache-2.0
// What the tests of both losses share: tensors in device memory and the loss of a row in plain
// double loops, with the size of what was added up.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/device/runtime.h"
#include "kernels/loss/options.h"

namespace tigon::testing_support {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

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

// Loss, log-sum-exp and gradient of one row for an upstream gradient of 1; *_size is the same sum
// of absolute values.
struct RowReference {
  double loss = 0, loss_size = 0, lse = 0, lse_size = 0;
  double z_part = 0, accuracy = 0, entropy = 0, entropy_size = 0;
  std::vector<double> gradient, gradient_size;
};

// Class weights may be empty: 1 each. `z_share` multiplies z_loss in loss and gradient.
inline RowReference row_reference(std::vector<double> x, int64_t y, const LossOptions& o,
                                  std::vector<double> weights = {}, double z_share = 1) {
  const auto columns = static_cast<double>(x.size());
  if (weights.empty()) weights.assign(x.size(), 1.0);
  RowReference r;
  r.gradient.assign(x.size(), 0.0);
  r.gradient_size.assign(x.size(), 0.0);
  if (y == o.ignore_index) return r;
  const bool valid = y >= 0 && y < static_cast<int64_t>(x.size());
  r.accuracy = valid ? std::max_element(x.begin(), x.end()) - x.begin() == y : kNaN;
  std::vector<double> slope(x.size(), 1.0);
  if (o.softcap > 0) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double t = std::tanh(x[i] / o.softcap);
      x[i] = o.softcap * t;
      slope[i] = 1 - t * t;
    }
  }
  double max = -kInfinity, sum = 0, total = 0, total_size = 0, all_weights = 0;
  for (const double v : x) max = std::max(max, v);
  for (const double v : x) {
    if (v != -kInfinity || max == -kInfinity) sum += std::exp(v - max);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    all_weights += weights[i];
    total += weights[i] * x[i];
    total_size += std::abs(weights[i] * x[i]);
  }
  const double a = o.label_smoothing, z = o.z_loss * z_share;
  const double weight = valid ? weights[static_cast<size_t>(y)] : kNaN;
  const double target = valid ? x[static_cast<size_t>(y)] : kNaN;
  r.lse = max == -kInfinity ? max : max + std::log(sum);
  r.lse_size = std::abs(max) + std::abs(r.lse) + 1;
  const double factor = (1 - a) * weight + a * all_weights / columns;
  r.loss = (1 - a) * weight * (r.lse - target) + z * r.lse * r.lse;
  if (a != 0) r.loss += a * (all_weights * r.lse - total) / columns;
  r.loss_size = r.lse_size * (factor + 2 * z * std::abs(r.lse)) + std::abs(weight * target);
  if (a != 0) r.loss_size += a * total_size / columns;
  r.z_part = o.z_loss * r.lse * r.lse;
  r.entropy_size = r.lse_size;
  for (size_t i = 0; i < x.size(); ++i) {
    const double hit = static_cast<int64_t>(i) == y ? (1 - a) * weight : 0;
    const double p = std::exp(x[i] - r.lse);
    r.gradient[i] =
        valid ? ((factor + 2 * z * r.lse) * p - a * weights[i] / columns - hit) * slope[i] : kNaN;
    const double exponent = 1 + (std::abs(x[i]) + r.lse_size) / 24;
    r.gradient_size[i] = p > 0 ? std::abs(factor + 2 * z * r.lse) * p * exponent : 0;
    r.gradient_size[i] += a * weights[i] / columns + hit;
    if (p > 0) r.entropy -= p * (x[i] - r.lse);
    if (p > 0) r.entropy_size += p * (1 + std::abs(x[i])) * (1 + std::abs(x[i] - max));
  }
  return r;
}

// |got - want| <= rounding to T + (4 sqrt(n) + 24) roundings in fp32 of `size` + smallest number.
template <class T>
bool is_close(double got, double want, double size, double n) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  const double bound = 1.1 * unit_roundoff(dtype_of<T>) * std::abs(want) +
                       (4 * std::sqrt(n) + 24) * 0x1p-24 * size +
                       std::max(smallest_subnormal(dtype_of<T>), 0x1p-120);
  return std::abs(got - want) <= bound;
}

}  // namespace tigon::testing_support
