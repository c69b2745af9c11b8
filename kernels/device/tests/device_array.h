// SPDX-License-Identifier: Apache-2.0
// A vector in device memory, for tests.
#pragma once
#include <vector>

#include "kernels/device/runtime.h"

namespace tigon {

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t n) : buffer_(n * sizeof(T)), size_(n) {}
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { set(values); }

  void set(const std::vector<T>& values) {
    device_upload(buffer_.data(), values.data(), size_ * sizeof(T));
  }
  std::vector<T> get() const {
    std::vector<T> values(size_);
    device_download(values.data(), buffer_.data(), size_ * sizeof(T));
    return values;
  }
  T* data() const { return static_cast<T*>(buffer_.data()); }

 private:
  DeviceBuffer buffer_;
  size_t size_;
};

}  // namespace tigon
