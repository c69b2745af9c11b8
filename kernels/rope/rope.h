// SPDX-License-Identifier: Apache-2.0
// rope: rotary position embedding of q and k, grouped heads   (Su et al. 2021)
//   a pair of columns (x1, x2) of a head and its angle:  x1' = x1 cos - x2 sin,
//   x2' = x2 cos + x1 sin;  backward rotates the other way.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::rope {

inline constexpr char kFormula[] =
    "x1' = x1 cos - x2 sin, x2' = x2 cos + x1 sin; backward rotates the other way";

inline constexpr Axis T{"T", "tokens"}, Q{"Q", "query heads"}, K{"K", "key heads"},
    D{"D", "head size, even"};

// Which columns are pair j of the R that are rotated: j and j + R/2 (rotate-half, GPT-NeoX and
// LLaMA) or 2j and 2j + 1 (interleaved, GPT-J).
enum class Pairing : int { kHalf, kInterleaved };

// M-RoPE: which pairs take the angles of a token's height and of its width; the others take those
// of its time. Chunked (Qwen2-VL): the last pairs, height before width. Interleaved (Qwen3-VL):
// pairs 1, 4, 7.. have the height, 2, 5, 8.. the width.
enum class Sections : int { kChunked, kInterleaved };

struct Options {
  int rotary = 0;  // R, the first columns of a head, which are rotated; the others stay. 0: all D
  Pairing pairing = Pairing::kHalf;
  int height = 0, width = 0;  // pairs of each in M-RoPE; 0 and 0: no M-RoPE
  Sections sections = Sections::kChunked;
};

constexpr void options(auto&& f) {
  f(option(&Options::rotary, "rotary"));
  f(option(&Options::pairing, "pairing", {"half", "interleaved"}));
  f(option(&Options::height, "height"));
  f(option(&Options::width, "width"));
  f(option(&Options::sections, "sections", {"chunked", "interleaved"}));
}

// Rows of the tables of angles: one per token, or any number of them where positions choose. The
// harness has as many.
constexpr Size table_rows() {
  return {"S", [](const Binding& b, Axis) { return b.at("T"); }};
}
// True when R/2 = `pairs` have room for the sections.
inline bool sections_fit(int64_t pairs, int64_t height, int64_t width, Sections sections) {
  if (sections == Sections::kChunked) return height + width <= pairs;
  return height <= (pairs + 1) / 3 && width <= pairs / 3;
}
// Angles of a row: one per pair; negative where the options do not fit D.
constexpr Size pairs() {
  return {"R/2", [](const Binding& b, Axis) {
            const auto value = [&](const char* name) { return static_cast<int64_t>(b.at(name)); };
            const int64_t d = value("D"), r = value("rotary"), half = (r != 0 ? r : d) / 2;
            const auto sections = static_cast<Sections>(value("sections"));
            const bool fits =
                r <= d && sections_fit(half, value("height"), value("width"), sections);
            return static_cast<double>(fits ? half : -1);
          }};
}
// Positions of a token: one, or time, height and width.
constexpr Size streams() {
  return {"P",
          [](const Binding& b, Axis) { return b.at("height") + b.at("width") > 0 ? 3.0 : 1.0; }};
}

// positions choose rows of cos and sin; left out, row t is token t's. A position outside of [0, S)
// is never used as an index: what it would rotate becomes NaN.
template <class P>
struct Forward : Options {
  static constexpr char kName[] = "rope.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<Elem, 3> q, k;
  View<const Accum, 2> cos, sin;     // [T, R/2], with positions [S, R/2]
  View<const int64_t, 2> positions;  // [1, T], in M-RoPE [3, T]
  View<Elem, 3> q_out, k_out;        // each left out: in place, else q or k is only read
  static constexpr void fields(auto&& f) {
    f(strided(inout(&Forward::q, "q", {T, Q, D})));
    f(strided(inout(&Forward::k, "k", {T, K, D})));
    f(in(&Forward::cos, "cos", {table_rows(), pairs()}));
    f(in(&Forward::sin, "sin", {table_rows(), pairs()}));
    f(on_request(in(&Forward::positions, "positions", {streams(), T})));
    f(on_request(strided(out(&Forward::q_out, "q_out", {T, Q, D}))));
    f(on_request(strided(out(&Forward::k_out, "k_out", {T, K, D}))));
    options(f);
  }
};

// Gradients, rotated back.
template <class P>
struct Backward : Options {
  static constexpr char kName[] = "rope.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<Elem, 3> dq, dk;              // token and head strides are free
  View<const Accum, 2> cos, sin;     // as forward's, and so are
  View<const int64_t, 2> positions;  // these
  View<Elem, 3> dq_out, dk_out;      // each left out: in place, else dq or dk is only read
  static constexpr void fields(auto&& f) {
    f(strided(gradient("q", inout(&Backward::dq, "dq", {T, Q, D}))));
    f(strided(gradient("k", inout(&Backward::dk, "dk", {T, K, D}))));
    f(in(&Backward::cos, "cos", {table_rows(), pairs()}));
    f(in(&Backward::sin, "sin", {table_rows(), pairs()}));
    f(on_request(in(&Backward::positions, "positions", {streams(), T})));
    f(on_request(strided(gradient("q", out(&Backward::dq_out, "dq_out", {T, Q, D})))));
    f(on_request(strided(gradient("k", out(&Backward::dk_out, "dk_out", {T, K, D})))));
    options(f);
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(); D even; T, Q and K up to 2^29. The columns of a head lie side by side;
// tokens and heads may be apart.
// Types: q and k are f32, bf16 or f16; cos and sin float; positions int64. Rounded once.
// Alignment: any. Fast where heads and rows of the tables start at multiples of 16 bytes, and so do
// the halves of the rotated columns.
// Memory: a result is in the place of its input, or overlaps no other tensor.
// Errors: kInvalidArgument for a shape, a stride, an option or a missing tensor; kUnsupported for
// sizes beyond these; kLaunchFailed for what the device says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::rope
