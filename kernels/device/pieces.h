// A piece of a row: the elements that one access moves. 16 bytes where rows are aligned, else one
// element, so that a kernel is written once for both.
#pragma once
#include <type_traits>

#include "kernels/device/device.h"

namespace tigon {

template <class T, int kWidth>
using Piece = std::conditional_t<kWidth == 1, T, Vec<T>>;

// kStream: this memory is read once, and no thread writes to it while the kernel runs.
template <int kWidth, bool kStream = false, class T>
TIGON_DEVICE Piece<std::remove_const_t<T>, kWidth> load_piece(T* p) {
  static_assert(kWidth == 1 || kWidth == kVec<std::remove_const_t<T>>);
  if constexpr (kWidth == 1)
    return kStream ? load_stream(p) : load(p);
  else
    return kStream ? load16_stream(p) : load16(p);
}

template <class T>
TIGON_DEVICE void unpack_piece(const T& piece, float (&f)[1]) {
  f[0] = to_float(piece);
}
template <class T>
TIGON_DEVICE void unpack_piece(const Vec<T>& piece, float (&f)[kVec<T>]) {
  unpack(piece, f);
}

template <class T, int kWidth>
TIGON_DEVICE void store_piece(T* p, float (&f)[kWidth]) {
  if constexpr (kWidth == 1)
    store(p, from_float<T>(f[0]));
  else
    store16(p, pack<T>(f));
}

// Rounds to the element type and back.
template <class T, int kWidth>
TIGON_DEVICE void round_piece(float (&f)[kWidth]) {
  if constexpr (kWidth == 1)
    f[0] = to_float(from_float<T>(f[0]));
  else
    unpack(pack<T>(f), f);
}

}  // namespace tigon
