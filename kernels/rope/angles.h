// SPDX-License-Identifier: Apache-2.0
// The angles of rope's pairs: rows of two tables, of a token or of the positions that it has.
#pragma once
#include "kernels/device/device.h"
#include "kernels/device/pieces.h"
#include "kernels/rope/rope.h"

namespace tigon::rope {

// kWidth elements that follow each other; of 16-bit pieces they are two vectors.
template <int kWidth>
TIGON_DEVICE void load_floats(const float* p, float (&f)[kWidth]) {
  constexpr int kStep = kWidth == 1 ? 1 : kVec<float>;
  TIGON_UNROLL
  for (int j = 0; j < kWidth; j += kStep) {
    float part[kStep];
    unpack_piece(load_piece<kStep>(p + j), part);
    TIGON_UNROLL
    for (int i = 0; i < kStep; ++i) f[j + i] = part[i];
  }
}

struct Angles {
  View<const float, 2> cos, sin;     // [S, R/2]
  View<const int64_t, 2> positions;  // [1, T] or [3, T]; without data row t is token t's
  int height, width;                 // of M-RoPE, pairs
  Sections sections;

  bool has_sections() const { return height + width > 0; }

  // Of pairs first .. first + kWidth - 1 of a token; NaN where its position has no row.
  template <int kWidth>
  TIGON_DEVICE void load(int64_t token, int first, float (&c)[kWidth], float (&s)[kWidth]) const {
    if (positions.data != nullptr && height + width > 0) return load_sections(token, first, c, s);
    const int64_t row = row_of(token, 0);
    if (row < 0) {
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) c[j] = s[j] = not_a_number();
      return;
    }
    load_floats(cos.data + row * cos.stride[0] + first, c);
    load_floats(sin.data + row * sin.stride[0] + first, s);
  }

 private:
  // -1: there is none.
  TIGON_DEVICE int64_t row_of(int64_t token, int stream) const {
    if (positions.data == nullptr) return token;
    const int64_t row = tigon::load(positions.data + stream * positions.stride[0] + token);
    return row >= 0 && row < cos.shape[0] ? row : -1;
  }

  // Which of the positions a pair has: 0 time, 1 height, 2 width.
  TIGON_DEVICE int stream_of(int pair) const {
    if (sections == Sections::kInterleaved) {
      const int stream = pair % 3, of_stream = stream == 1 ? height : width;
      return pair < 3 * of_stream ? stream : 0;
    }
    const int begin_width = static_cast<int>(cos.shape[1]) - width;
    return pair >= begin_width ? 2 : pair >= begin_width - height ? 1 : 0;
  }

  template <int kWidth>
  TIGON_DEVICE void load_sections(int64_t token, int first, float (&c)[kWidth],
                                  float (&s)[kWidth]) const {
    const int64_t time = row_of(token, 0), high = row_of(token, 1), wide = row_of(token, 2);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const int pair = first + j, stream = stream_of(pair);
      const int64_t row = stream == 0 ? time : stream == 1 ? high : wide;
      c[j] = row < 0 ? not_a_number() : tigon::load(cos.data + row * cos.stride[0] + pair);
      s[j] = row < 0 ? not_a_number() : tigon::load(sin.data + row * sin.stride[0] + pair);
    }
  }

  static TIGON_DEVICE float not_a_number() { return dtype_detail::bits_as<float>(0x7fc00000u); }
};

}  // namespace tigon::rope
