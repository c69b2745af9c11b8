// SPDX-License-Identifier: Apache-2.0
// Cuts the scratch of a launcher into arrays.
#pragma once
#include <cstdint>

#include "kernels/signature/signature.h"

namespace tigon {

// Hands out arrays one after the other, each 256-byte aligned like the scratch itself. Without
// memory it only adds up, so that one function lays out the scratch and computes its size.
class ScratchParts {
 public:
  explicit ScratchParts(void* data) : data_(static_cast<char*>(data)) {}

  template <class T>
  T* take(int64_t count) {
    used_ = (used_ + 255) / 256 * 256;
    T* const part = data_ != nullptr ? reinterpret_cast<T*>(data_ + used_) : nullptr;
    used_ += static_cast<size_t>(count) * sizeof(T);
    return part;
  }
  size_t bytes() const { return used_; }

 private:
  char* data_;
  size_t used_ = 0;
};

}  // namespace tigon
