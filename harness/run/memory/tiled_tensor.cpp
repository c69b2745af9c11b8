// SPDX-License-Identifier: Apache-2.0
// Large tensors from tiles of rows.
#include "harness/run/memory/tiled_tensor.h"

#include <algorithm>
#include <cstring>

#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/convert.h"

namespace tigon {

namespace {

constexpr size_t kGuard = 512;
constexpr unsigned char kGuardByte = 0xa5;
constexpr int64_t kTileElements = 1 << 23;
constexpr int64_t kTilePrimes[] = {1021, 251, 61, 13, 7, 3};

// Rows of a tile; all rows when there are few elements.
int64_t tile_rows_of(int64_t rows, int64_t row_elements) {
  if (rows * row_elements <= kTileElements) return rows;
  for (const int64_t prime : kTilePrimes)
    if (prime * row_elements <= kTileElements) return std::min(prime, rows);
  return 1;
}

}  // namespace

bool has_rows(const TensorInfo& info, const Binding& binding, const std::string& row_axis) {
  Binding longer = binding;
  longer[row_axis] += 1;
  return !info.shape.empty() && info.shape[0].integer(longer) != info.shape[0].integer(binding);
}

TiledTensor::TiledTensor(const TensorInfo& info, DType dtype, const Binding& binding,
                         const std::string& row_axis)
    : info_(&info), dtype_(dtype), row_wise_(has_rows(info, binding, row_axis)) {
  for (const Expr& e : info.shape) shape_.push_back(e.integer(binding));
  for (size_t d = 0; d < shape_.size(); ++d)
    (d == 0 && row_wise_ ? rows_ : row_elements_) *= shape_[d];
  memory_ = DeviceBuffer(static_cast<size_t>(rows_) * row_bytes() + 2 * kGuard);
  device_fill(memory_.data(), kGuardByte, kGuard);
  device_fill(memory_.as<char>() + memory_.bytes() - kGuard, kGuardByte, kGuard);
}

TensorRef TiledTensor::ref() const {
  TensorRef ref{memory_.as<char>() + kGuard, dtype_, shape_, {}};
  ref.stride.assign(shape_.size(), 1);
  for (size_t d = shape_.size(); d-- > 1;) ref.stride[d - 1] = ref.stride[d] * shape_[d];
  return ref;
}

void TiledTensor::plan(const InputPlan& plan, uint64_t seed, const Binding& binding) {
  tile_rows_ = tile_rows_of(rows_, row_elements_);
  std::vector<int64_t> shape = shape_;
  if (row_wise_) shape[0] = tile_rows_;
  std::vector<double> values;
  // Qualified, because fill() of this class writes to the device.
  tigon::fill(plan, seed, shape, binding, &values, dtype_);
  tile_ = narrow(values, dtype_);
}

std::vector<std::byte> TiledTensor::planned(int64_t first, int64_t count) const {
  const size_t bytes = row_bytes();
  std::vector<std::byte> packed(static_cast<size_t>(count) * bytes);
  for (int64_t r = 0; r < count; ++r) {
    if (!nonzero_rows_.empty() &&
        !std::binary_search(nonzero_rows_.begin(), nonzero_rows_.end(), first + r))
      continue;
    std::memcpy(packed.data() + static_cast<size_t>(r) * bytes,
                tile_.data() + static_cast<size_t>((first + r) % tile_rows_) * bytes, bytes);
  }
  return packed;
}

// In steps of a tile, so that the host holds no more than that.
void TiledTensor::fill() {
  const int64_t step = std::max<int64_t>(tile_rows_, 1);
  for (int64_t r = 0; r < rows_; r += step) {
    const int64_t count = std::min(step, rows_ - r);
    upload(r, planned(r, count));
  }
}

void TiledTensor::poison(unsigned char byte) {
  device_fill(memory_.as<char>() + kGuard, byte, memory_.bytes() - 2 * kGuard);
}

std::vector<std::byte> TiledTensor::download(int64_t first, int64_t count) const {
  std::vector<std::byte> packed(static_cast<size_t>(count) * row_bytes());
  device_download(packed.data(),
                  memory_.as<char>() + kGuard + static_cast<size_t>(first) * row_bytes(),
                  packed.size());
  return packed;
}

void TiledTensor::upload(int64_t first, const std::vector<std::byte>& packed) {
  device_upload(memory_.as<char>() + kGuard + static_cast<size_t>(first) * row_bytes(),
                packed.data(), packed.size());
}

bool TiledTensor::guards_hold() const {
  std::vector<unsigned char> guard(kGuard);
  for (const size_t at : {size_t{0}, memory_.bytes() - kGuard}) {
    device_download(guard.data(), memory_.as<char>() + at, kGuard);
    if (std::any_of(guard.begin(), guard.end(), [](unsigned char b) { return b != kGuardByte; }))
      return false;
  }
  return true;
}

}  // namespace tigon
