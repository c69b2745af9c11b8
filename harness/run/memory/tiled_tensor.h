// SPDX-License-Identifier: Apache-2.0
// Tensors too large to make on the host: rows repeat with a prime period, so that no wrapped offset
// (a power of two) meets its own data again, and any row can be made again at any time.
#pragma once
#include <string>
#include <vector>

#include "harness/run/cases/case.h"
#include "kernels/device/runtime.h"

namespace tigon {

// Whether the tensor has more rows where `row_axis` is longer.
bool has_rows(const TensorInfo& info, const Binding& binding, const std::string& row_axis);

class TiledTensor {
 public:
  // Memory with guards for a tensor of a pass under this binding; `row_axis` in front makes it
  // row-wise. Throws DeviceOutOfMemory.
  TiledTensor(const TensorInfo& info, DType dtype, const Binding& binding,
              const std::string& row_axis);

  const TensorInfo& info() const { return *info_; }
  DType dtype() const { return dtype_; }
  bool row_wise() const { return row_wise_; }
  bool is_input() const { return info_->is_input(); }
  bool is_output() const { return info_->is_output(); }
  int64_t rows() const { return rows_; }
  int64_t row_elements() const { return row_elements_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  TensorRef ref() const;

  // The values that inputs have: a distribution, given to a tile of rows.
  void plan(const InputPlan& plan, uint64_t seed, const Binding& binding);
  // Plans zeros for all rows but these, which are sorted.
  void zero_rows_except(std::vector<int64_t> rows) { nonzero_rows_ = std::move(rows); }
  // Packed bytes of planned rows [first, first + count).
  std::vector<std::byte> planned(int64_t first, int64_t count) const;

  // Writes the planned rows.
  void fill();
  void poison(unsigned char byte);
  // Packed bytes of rows in memory.
  std::vector<std::byte> download(int64_t first, int64_t count) const;
  void upload(int64_t first, const std::vector<std::byte>& packed);
  // Whether the guards on both sides still hold their pattern.
  bool guards_hold() const;

 private:
  size_t row_bytes() const { return static_cast<size_t>(row_elements_) * size_of(dtype_); }

  const TensorInfo* info_;
  DType dtype_;
  std::vector<int64_t> shape_;
  bool row_wise_ = false;
  int64_t rows_ = 1, row_elements_ = 1, tile_rows_ = 0;
  std::vector<std::byte> tile_;
  std::vector<int64_t> nonzero_rows_;  // sorted; empty: all
  DeviceBuffer memory_;
};

}  // namespace tigon
