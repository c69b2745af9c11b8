// Guarded tensors.
#include "harness/run/arena.h"

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
  row_pitch_ = rank > 1 ? static_cast<size_t>(ref_.stride[rank - 2]) * element_bytes_ : extent_;
  start_ = guard_bytes() + static_cast<size_t>(shift) * element_bytes_;
  // At least one byte: the address of an empty tensor still says that it was given.
  buffer_ = DeviceBuffer(std::max<size_t>(start_ + extent_ + guard_bytes(), 1));
  ref_.data = buffer_.as<char>() + start_;
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

std::vector<std::byte> ArenaTensor::guard_image() const {
  std::vector<std::byte> image(buffer_.bytes());
  for (size_t i = 0; i < image.size(); ++i) image[i] = guard_byte(i);
  return image;
}

void ArenaTensor::send(const std::vector<std::byte>& image) {
  if (image.empty()) return;
  device_upload(buffer_.data(), image.data(), image.size());
  // Reading what lies outside of the elements is as wrong as writing it.
  size_t end = 0;
  for (size_t r = 0; r < rows(); ++r) {
    device_mark_uninitialized(buffer_.as<char>() + end, row_start(r) - end);
    end = row_start(r) + row_bytes();
  }
  device_mark_uninitialized(buffer_.as<char>() + end, buffer_.bytes() - end);
}

void ArenaTensor::upload(const std::vector<std::byte>& packed) {
  std::vector<std::byte> image = guard_image();
  for (size_t r = 0; r < rows(); ++r)
    std::memcpy(image.data() + row_start(r), packed.data() + r * row_bytes(), row_bytes());
  send(image);
}

void ArenaTensor::poison(unsigned char byte) {
  std::vector<std::byte> image = guard_image();
  for (size_t r = 0; r < rows(); ++r) std::memset(image.data() + row_start(r), byte, row_bytes());
  send(image);
  for (size_t r = 0; r < rows(); ++r)
    device_mark_uninitialized(buffer_.as<char>() + row_start(r), row_bytes());
}

std::vector<std::byte> ArenaTensor::download(std::optional<std::string>* damage) const {
  std::vector<std::byte> image(buffer_.bytes()), packed(elements_ * element_bytes_);
  if (!image.empty()) device_download(image.data(), buffer_.data(), image.size());
  for (size_t r = 0; r < rows(); ++r)
    std::memcpy(packed.data() + r * row_bytes(), image.data() + row_start(r), row_bytes());

  const auto inspect = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end && !*damage; ++i) {
      if (image[i] == guard_byte(i)) continue;
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
  size_t end = 0;
  for (size_t r = 0; r < rows(); ++r) {
    inspect(end, row_start(r));
    end = row_start(r) + row_bytes();
  }
  inspect(end, image.size());
  return packed;
}

}  // namespace tigon
