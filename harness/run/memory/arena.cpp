// SPDX-License-Identifier: Apache-2.0
// Guarded tensors.
#include "harness/run/memory/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/run/executor.h"

namespace tigon {

namespace {

// The checking executor has red zones of its own around an allocation; guards inside it would only
// hide them.
size_t guard_bytes() { return executor_checks() ? 0 : kGuardBytes; }

}  // namespace

ArenaTensor::ArenaTensor(std::string name, DType dtype, std::vector<int64_t> shape, int gap,
                         int shift)
    : name_(std::move(name)), element_bytes_(size_of(dtype)) {
  ref_.dtype = dtype;
  ref_.shape = std::move(shape);
  const size_t rank = ref_.shape.size();
  ref_.stride.assign(rank, 1);
  elements_ = 1;
  int64_t pitch = 1, extent = 1;
  for (size_t d = rank; d-- > 0;) {
    ref_.stride[d] = pitch;
    pitch *= ref_.shape[d];
    if (d + 1 == rank && rank > 1) pitch += gap;
    elements_ *= static_cast<size_t>(ref_.shape[d]);
  }
  for (size_t d = 0; d < rank; ++d) extent += (ref_.shape[d] - 1) * ref_.stride[d];
  extent_ = elements_ == 0 ? 0 : static_cast<size_t>(extent) * element_bytes_;
  const bool has_pitch = rank > 1 && rows() > 1;
  row_pitch_ = has_pitch ? static_cast<size_t>(ref_.stride[rank - 2]) * element_bytes_ : extent_;
  start_ = guard_bytes() + static_cast<size_t>(shift) * element_bytes_;
  // At least one byte: the address of an empty tensor still says that it was given.
  bytes_ = std::max<size_t>(start_ + extent_ + guard_bytes(), 1);
  const bool sparse = gap >= kSparseGap && elements_ > 0;
  if (sparse) {
    const size_t bytes = bytes_;
    reserved_ = {static_cast<char*>(executor_reserve(bytes)),
                 [bytes](char* p) { executor_release(p, bytes); }};
    base_ = reserved_.get();
  } else {
    buffer_ = DeviceBuffer(bytes_);
    base_ = buffer_.as<char>();
  }
  ref_.data = base_ + start_;
  make_segments(sparse);
}

void ArenaTensor::make_segments(bool sparse) {
  if (!sparse) {
    segments_ = {{0, bytes_, 0, rows()}};
    return;
  }
  for (size_t r = 0; r < rows(); ++r)
    segments_.push_back({row_start(r) - guard_bytes(),
                         std::min(bytes_, row_start(r) + row_bytes() + guard_bytes()), r, r + 1});
}

// What has to be written and read for the guards: of packed rows the two ends, without an element.
std::vector<ArenaTensor::Segment> ArenaTensor::guarded_segments() const {
  if (!is_packed()) return segments_;
  return {{0, start_, 0, 0}, {start_ + extent_, bytes_, rows(), rows()}};
}

size_t ArenaTensor::row_bytes() const {
  return elements_ == 0 ? 0 : static_cast<size_t>(ref_.shape.back()) * element_bytes_;
}

size_t ArenaTensor::rows() const {
  return elements_ == 0 ? 0 : elements_ / static_cast<size_t>(ref_.shape.back());
}

size_t ArenaTensor::row_start(size_t row) const { return start_ + row * row_pitch_; }

void ArenaTensor::set_round(int round) { guard_salt_ = round == 0 ? 0xa5u : 0x5au; }

// Differs from byte to byte, so that a copy of the neighbouring guard shows too.
std::byte ArenaTensor::guard_byte(size_t position) const {
  return static_cast<std::byte>(guard_salt_ ^ ((position * 37u) & 0xffu));
}

std::vector<std::byte> ArenaTensor::guard_image(const Segment& segment) const {
  std::vector<std::byte> image(segment.end - segment.begin);
  for (size_t i = 0; i < image.size(); ++i) image[i] = guard_byte(segment.begin + i);
  return image;
}

void ArenaTensor::send(const Segment& segment, const std::vector<std::byte>& image) {
  if (image.empty()) return;
  device_upload(base_ + segment.begin, image.data(), image.size());
  // Reading what lies outside of the elements is as wrong as writing it.
  size_t end = segment.begin;
  for (size_t r = segment.first_row; r < segment.last_row; ++r) {
    device_mark_uninitialized(base_ + end, row_start(r) - end);
    end = row_start(r) + row_bytes();
  }
  device_mark_uninitialized(base_ + end, segment.end - end);
}

void ArenaTensor::upload(const std::vector<std::byte>& packed) {
  for (const Segment& s : segments_) {
    std::vector<std::byte> image = guard_image(s);
    for (size_t r = s.first_row; r < s.last_row; ++r)
      std::memcpy(image.data() + row_start(r) - s.begin, packed.data() + r * row_bytes(),
                  row_bytes());
    send(s, image);
  }
}

void ArenaTensor::poison(unsigned char byte) {
  if (is_packed()) device_fill(ref_.data, byte, extent_);
  for (const Segment& s : guarded_segments()) {
    std::vector<std::byte> image = guard_image(s);
    for (size_t r = s.first_row; r < s.last_row; ++r)
      std::memset(image.data() + row_start(r) - s.begin, byte, row_bytes());
    send(s, image);
  }
  for (size_t r = 0; r < rows(); ++r) device_mark_uninitialized(base_ + row_start(r), row_bytes());
}

std::vector<std::byte> ArenaTensor::download(std::optional<std::string>* damage) const {
  std::vector<std::byte> packed(elements_ * element_bytes_);
  for (const Segment& s : segments_) {
    std::vector<std::byte> image(s.end - s.begin);
    if (!image.empty()) device_download(image.data(), base_ + s.begin, image.size());
    for (size_t r = s.first_row; r < s.last_row; ++r)
      std::memcpy(packed.data() + r * row_bytes(), image.data() + row_start(r) - s.begin,
                  row_bytes());
    inspect(s, image, damage);
  }
  return packed;
}

void ArenaTensor::inspect(std::optional<std::string>* damage) const {
  for (const Segment& s : guarded_segments()) {
    std::vector<std::byte> image(s.end - s.begin);
    if (!image.empty()) device_download(image.data(), base_ + s.begin, image.size());
    inspect(s, image, damage);
  }
}

void ArenaTensor::inspect(const Segment& segment, const std::vector<std::byte>& image,
                          std::optional<std::string>* damage) const {
  const auto between = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end && !*damage; ++i) {
      if (image[i - segment.begin] == guard_byte(i)) continue;
      const auto place = static_cast<int64_t>(i) - static_cast<int64_t>(start_);
      if (place < 0)
        *damage = fmt::format("{} bytes before {}", -place, name_);
      else if (static_cast<size_t>(place) >= extent_)
        *damage = fmt::format("{} bytes behind the end of {}", static_cast<size_t>(place) - extent_,
                              name_);
      else
        *damage = fmt::format("between the rows of {}, behind row {}", name_,
                              static_cast<size_t>(place) / row_pitch_);
    }
  };
  size_t end = segment.begin;
  for (size_t r = segment.first_row; r < segment.last_row; ++r) {
    between(end, row_start(r));
    end = row_start(r) + row_bytes();
  }
  between(end, segment.end);
}

}  // namespace tigon
