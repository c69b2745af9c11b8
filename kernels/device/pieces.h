// SPDX-License-Identifier: Apache-2.0
// A piece of a row: the elements that one access moves. 16 bytes where rows are aligned, else one
// element, so that a kernel is written once for both.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/device/device.h"

namespace tigon {

// kWidth elements as they lie in memory. Words, because nvcc keeps an array of eight 16-bit
// elements in eight registers.
template <class T, int kWidth>
struct Piece {
  static_assert(kWidth == kVec<T>);
  uint32_t words[4];
};
template <class T>
struct Piece<T, 1> {
  T element;
};

template <int kWidth, class T>
TIGON_DEVICE Piece<T, kWidth> load_piece(const T* p) {
  if constexpr (kWidth == 1)
    return {load(p)};
  else
    return dtype_detail::bits_as<Piece<T, kWidth>>(load16(p));
}
// For memory that is read once.
template <int kWidth, class T>
TIGON_DEVICE Piece<T, kWidth> load_piece_stream(const T* p) {
  if constexpr (kWidth == 1)
    return {load_stream(p)};
  else
    return dtype_detail::bits_as<Piece<T, kWidth>>(load16_stream(p));
}

template <class T, int kWidth>
TIGON_DEVICE void unpack_piece(const Piece<T, kWidth>& piece, float (&f)[kWidth]) {
  if constexpr (kWidth == 1)
    f[0] = to_float(piece.element);
  else
    unpack(dtype_detail::bits_as<Vec<T>>(piece), f);
}

template <class T, int kWidth>
TIGON_DEVICE void store_piece(T* p, float (&f)[kWidth]) {
  if constexpr (kWidth == 1)
    store(p, from_float<T>(f[0]));
  else
    store16(p, pack<T>(f));
}

// The piece with these values, rounded.
template <class T, int kWidth>
TIGON_DEVICE Piece<T, kWidth> pack_piece(float (&f)[kWidth]) {
  if constexpr (kWidth == 1)
    return {from_float<T>(f[0])};
  else
    return dtype_detail::bits_as<Piece<T, kWidth>>(pack<T>(f));
}
template <class T, int kWidth>
TIGON_DEVICE void store_packed(T* p, const Piece<T, kWidth>& piece) {
  if constexpr (kWidth == 1)
    store(p, piece.element);
  else
    store16(p, dtype_detail::bits_as<Vec<T>>(piece));
}

// Rounds to the element type and back.
template <class T, int kWidth>
TIGON_DEVICE void round_piece(float (&f)[kWidth]) {
  if constexpr (kWidth == 1)
    f[0] = to_float(from_float<T>(f[0]));
  else
    unpack(pack<T>(f), f);
}

// Of `so_far` and the piece's elements; a NaN counts for nothing. Two elements at a time where
// there is an instruction for it.
template <class T, int kWidth>
TIGON_DEVICE Piece<T, kWidth> larger_elements(const Piece<T, kWidth>& so_far,
                                              const Piece<T, kWidth>& piece) {
#if TIGON_GPU
  if constexpr (kWidth == 8) {
    Piece<T, kWidth> r;
    TIGON_UNROLL
    for (int w = 0; w < 4; ++w) r.words[w] = device::max_pair<T>(so_far.words[w], piece.words[w]);
    return r;
  }
#endif
  float a[kWidth], b[kWidth];
  unpack_piece(so_far, a);
  unpack_piece(piece, b);
  for (int j = 0; j < kWidth; ++j) a[j] = fmaxf(a[j], b[j]);
  return pack_piece<T>(a);
}

// For pieces that are read only where they have been loaded. g++ cannot see that and needs a value;
// on a GPU a zero in every register would cost time.
template <class... Pieces>
TIGON_DEVICE void leave_unset(Pieces&... arrays) {
#if TIGON_GPU
  (static_cast<void>(arrays), ...);
#else
  const auto clear = [](auto& pieces) {
    for (auto& piece : pieces) piece = {};
  };
  (clear(arrays), ...);
#endif
}

// Hides from the compiler that the piece is known: it computes values again instead of keeping
// them. Without this nvcc keeps a row of bf16 in twice the registers, as float.
template <class T, int kWidth>
TIGON_DEVICE void keep_packed(Piece<T, kWidth>& piece) {
#if TIGON_GPU
  if constexpr (kWidth > 1)
    asm volatile(""
                 : "+r"(piece.words[0]), "+r"(piece.words[1]), "+r"(piece.words[2]),
                   "+r"(piece.words[3]));
#else
  static_cast<void>(piece);
#endif
}

// Goes between loads and the first use of their values: ptxas moves no load behind it. Where
// registers are few it would otherwise postpone some loads until others have been used, and the
// thread would wait for memory twice. The warp need not be whole.
TIGON_DEVICE void issue_loads() {
#if TIGON_GPU
  __syncwarp(__activemask());
#endif
}

// Makes nvcc keep the value in a register instead of computing it again at every use.
TIGON_DEVICE void keep_computed(int& value) {
#if TIGON_GPU
  asm volatile("" : "+r"(value));
#else
  static_cast<void>(value);
#endif
}

}  // namespace tigon
