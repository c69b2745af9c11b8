// SPDX-License-Identifier: Apache-2.0
// Conversions between doubles and stored elements.
#include "harness/run/memory/convert.h"

#include <cstdint>
#include <cstring>

#include "harness/judge/judge_fault.h"

namespace tigon {

namespace {

// Calls f.operator()<T>() with the C++ type of the element type.
template <class F>
void with_type(DType type, F&& f) {
  switch (type) {
    case DType::kF64:
      return f.template operator()<double>();
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kBF16:
      return f.template operator()<bf16>();
    case DType::kF16:
      return f.template operator()<f16>();
    case DType::kI64:
      return f.template operator()<int64_t>();
    case DType::kI32:
      return f.template operator()<int32_t>();
    case DType::kU8:
      return f.template operator()<uint8_t>();
  }
}

// The upper 16 bits of every f32 as a bf16: a comparator that has the width wrong.
std::vector<double> high_halves(const std::byte* bytes, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes + 4 * i + 2, sizeof bits);
    values[i] = static_cast<double>(bf16::from_bits(bits));
  }
  return values;
}

}  // namespace

std::vector<std::byte> narrow(const std::vector<double>& values, DType type) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  with_type(type, [&]<class T>() {
    std::byte* to = bytes.data();
    for (double v : values) {
      const T element = static_cast<T>(v);
      std::memcpy(to, &element, sizeof(T));
      to += sizeof(T);
    }
  });
  return bytes;
}

std::vector<double> widen(const std::byte* bytes, size_t count, DType type) {
  std::vector<double> values(count);
  if (planted(JudgeFault::kWrongWidth) && type == DType::kF32) return high_halves(bytes, count);
  with_type(type, [&]<class T>() {
    for (double& v : values) {
      T element;
      std::memcpy(&element, bytes, sizeof(T));
      v = static_cast<double>(element);
      bytes += sizeof(T);
    }
  });
  return values;
}

}  // namespace tigon
