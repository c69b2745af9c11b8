// SPDX-License-Identifier: Apache-2.0
// Tensors in device memory for the smoke tests of kernels: random values, row padding, any
// alignment, and the error budget of a result.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/device/runtime.h"
#include "kernels/signature/signature.h"

namespace tigon {

// A matrix [rows, columns] whose rows are `stride` elements apart and start `shift` elements behind
// an aligned address.
template <class T>
class TestTensor {
 public:
  struct Layout {
    int64_t pad = 0, shift = 0;
  };
  TestTensor(int64_t rows, int64_t columns, Layout layout = {}, float mean = 0.0f)
      : rows_(rows), columns_(columns), stride_(columns + layout.pad), shift_(layout.shift) {
    static std::mt19937 random(1);
    std::normal_distribution<float> normal(mean, 1.0f);
    made_.resize(static_cast<size_t>(rows * stride_ + shift_));
    for (T& v : made_) v = T(normal(random));
    memory_ = DeviceBuffer(made_.size() * sizeof(T));
    got_ = made_;
    upload();
  }

  View<T, 2> view() const { return {memory_.as<T>() + shift_, {rows_, columns_}, {stride_, 1}}; }
  View<const T, 2> const_view() const { return {view().data, {rows_, columns_}, {stride_, 1}}; }
  View<const T, 1> const_row() const { return {view().data, {columns_}, {1}}; }
  View<T, 1> row() const { return {view().data, {columns_}, {1}}; }
  // [rows, heads, d], where columns = heads * d.
  View<T, 3> heads_view(int64_t heads, int64_t d) const {
    return {view().data, {rows_, heads, d}, {stride_, d, 1}};
  }

  // The value that was uploaded, and the one that download() fetched.
  double made(int64_t row, int64_t column) const {
    return static_cast<double>(made_[index(row, column)]);
  }
  double got(int64_t row, int64_t column) const {
    return static_cast<double>(got_[index(row, column)]);
  }
  void set(int64_t row, int64_t column, double v) {
    made_[index(row, column)] = T(v);
    upload();
  }
  void download() {
    device_synchronize();
    if (!got_.empty()) device_download(got_.data(), memory_.data(), memory_.bytes());
  }
  // True when nothing outside the rows differs from what was uploaded.
  bool gaps_unchanged() const {
    for (size_t i = 0; i < made_.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) - shift_;
      if ((at < 0 || at % stride_ >= columns_) && !(got_[i] == made_[i])) return false;
    }
    return true;
  }

 private:
  void upload() {
    if (!made_.empty()) device_upload(memory_.data(), made_.data(), memory_.bytes());
  }
  size_t index(int64_t row, int64_t column) const {
    return static_cast<size_t>(shift_ + row * stride_ + column);
  }
  int64_t rows_, columns_, stride_, shift_;
  std::vector<T> made_, got_;
  DeviceBuffer memory_;
};

// The budget of op_spec.h: `roundings` to T on the way out, a sum of n terms, S = scale.
template <class T>
double budget(double expected, double scale, double n = 1, double elementary = 8,
              double roundings = 1) {
  const double u = unit_roundoff(dtype_of<T>);
  const double approximate = sizeof(T) == 2 ? u / 4 : 0;
  return (roundings * u + approximate) * std::fabs(expected) +
         (4 * std::sqrt(n) + elementary) * 0x1p-24 * scale + smallest_subnormal(dtype_of<T>);
}

}  // namespace tigon
