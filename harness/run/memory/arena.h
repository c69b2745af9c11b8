// SPDX-License-Identifier: Apache-2.0
// Tensors in device memory with guard zones: every byte around them and between their rows holds a
// pattern that is compared after the call. Rows that lie very far apart are guarded on either side
// only, and the memory between them is never touched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"
#include "kernels/device/runtime.h"

namespace tigon {

// Bytes that an output holds before a call. One is NaN in every float type; the other is large and
// finite in f32 and bf16, so that a maximum that swallows NaN shows as well.
inline constexpr unsigned char kPoisons[2] = {0xff, 0x7f};

inline constexpr size_t kGuardBytes = 512;

// Rows with a larger gap are kept in memory of which only the rows are touched.
inline constexpr int kSparseGap = 1 << 20;
// So many that the second row starts beyond 2^31.
inline constexpr int kFarGap = INT32_MAX - 15;

class ArenaTensor {
 public:
  // Memory for a tensor of this shape whose rows lie `gap` elements apart and whose address is
  // `shift` elements beyond a multiple of 256. Throws DeviceOutOfMemory.
  ArenaTensor(std::string name, DType dtype, std::vector<int64_t> shape, int gap, int shift);

  const std::string& name() const { return name_; }
  const TensorRef& ref() const { return ref_; }
  size_t elements() const { return elements_; }

  // Chooses the guard pattern of what follows: a byte that happens to be written as its guard in
  // one round differs from it in the next.
  void set_round(int round);
  // Writes packed elements and the guard pattern.
  void upload(const std::vector<std::byte>& packed);
  // Fills the elements with a byte that has no meaning; the checking executor takes them as
  // uninitialised.
  void poison(unsigned char byte);
  // Reads the elements, packed. `damage` says where a byte outside of them has changed, if any.
  std::vector<std::byte> download(std::optional<std::string>* damage) const;
  // The second half of it alone: no element of rows without gaps is read.
  void inspect(std::optional<std::string>* damage) const;

 private:
  // A part of the buffer that is written and compared: all of it, or a row with its guards.
  struct Segment {
    size_t begin, end;           // bytes of the buffer
    size_t first_row, last_row;  // rows in it: [first, last)
  };
  size_t row_bytes() const;
  size_t rows() const;
  size_t row_start(size_t row) const;  // in the buffer
  std::byte guard_byte(size_t position) const;
  void make_segments(bool sparse);
  bool is_packed() const { return row_pitch_ == row_bytes(); }
  std::vector<Segment> guarded_segments() const;
  std::vector<std::byte> guard_image(const Segment& segment) const;
  void send(const Segment& segment, const std::vector<std::byte>& image);
  void inspect(const Segment& segment, const std::vector<std::byte>& image,
               std::optional<std::string>* damage) const;

  std::string name_;
  TensorRef ref_;
  size_t elements_ = 0, element_bytes_ = 0, start_ = 0, extent_ = 0, row_pitch_ = 0, bytes_ = 0;
  unsigned guard_salt_ = 0;
  std::vector<Segment> segments_;
  DeviceBuffer buffer_;
  std::shared_ptr<char> reserved_;  // of which only the rows are touched
  char* base_ = nullptr;            // of whichever there is
};

}  // namespace tigon
