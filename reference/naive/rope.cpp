// SPDX-License-Identifier: Apache-2.0
// cos and sin are those of the positions, rounded to the type of q and repeated for both columns of
// a pair; then every step is one over q's or k's size: negate, concatenate, two products, one sum.
#include "reference/naive/rope.h"

#include "reference/naive/eager.h"

namespace tigon::naive {
namespace {

using tigon::rope::Options;
using tigon::rope::Pairing;
using tigon::rope::Sections;

// The rows of a table [S, R/2] that the tokens have, [1, T, R/2].
template <class Table, class Positions>
Tensor angles_of(const Eager& e, const Table& table, const Positions& positions, const Options& o) {
  if (!positions) return as_matrix(table);
  const Tensor rows = as_matrix(table);
  const int64_t half = rows.shape[2];
  const Tensor angles = e.empty(DType::kF32, {1, positions.shape[1], half});
  const auto take = [&](int section, int64_t begin, int64_t count) {
    if (count > 0)
      e.take_rows(rows.slice(2, begin, count), positions.data + section * positions.stride[0],
                  angles.slice(2, begin, count));
  };
  const bool chunked = o.sections == Sections::kChunked;
  take(0, 0, chunked ? half - o.height - o.width : half);
  if (chunked) {
    take(1, half - o.height - o.width, o.height);
    take(2, half - o.width, o.width);
  } else {
    for (int i = 0; i < o.height; ++i) take(1, 3 * i + 1, 1);
    for (int i = 0; i < o.width; ++i) take(2, 3 * i + 2, 1);
  }
  return angles;
}

// The first (0) or second (1) columns of all pairs of x [N, M, R]; interleaved pairs as
// [N * M, R/2, 1], and x has no gaps.
Tensor members(const Tensor& x, Pairing pairing, int which) {
  const int64_t half = x.shape[2] / 2;
  if (pairing == Pairing::kHalf) return x.slice(2, which * half, half);
  const Tensor pairs{
      x.type, x.data, {x.shape[0] * x.shape[1], half, 2}, {2 * half, 2, 1}, x.memory};
  return pairs.slice(2, which, 1);
}

// [1, T, R/2] fp32 to [T, 1, R] of `type`, both columns of a pair the same.
Tensor both_members(const Eager& e, Tensor angles, DType type, Pairing pairing) {
  const int64_t tokens = angles.shape[1], half = angles.shape[2];
  const Tensor both = e.empty(type, {1, tokens, 2 * half});
  if (pairing == Pairing::kInterleaved) {
    angles.shape = {tokens, half, 1};
    angles.stride = {angles.stride[1], 1, 1};
  }
  for (const int which : {0, 1}) e.unary(Unary::kCopy, angles, members(both, pairing, which));
  return {type, both.data, {tokens, 1, 2 * half}, {2 * half, 2 * half, 1}, both.memory};
}

enum class Direction { kForward, kBackward };

// (-x2, x1) of the pairs (x1, x2); backward, its transpose (x2, -x1).
Tensor rotate_pairs(const Eager& e, const Tensor& x, Pairing pairing, Direction direction) {
  const Tensor y = e.empty(x.type, x.shape);
  const bool forward = direction == Direction::kForward;
  e.unary(forward ? Unary::kNegate : Unary::kCopy, members(x, pairing, 1), members(y, pairing, 0));
  e.unary(forward ? Unary::kCopy : Unary::kNegate, members(x, pairing, 0), members(y, pairing, 1));
  return y;
}

struct Rotation {
  Tensor cos, sin;
  Pairing pairing;
  Direction direction;
};

// Rotates the first columns of x, as many as cos has, into y.
void rotate(const Eager& e, const Tensor& x, const Rotation& r, const Tensor& y) {
  const int64_t rotary = r.cos.shape[2], others = x.shape[2] - rotary;
  Tensor rotated = x.slice(2, 0, rotary);
  if (r.pairing == Pairing::kInterleaved) rotated = e.unary(Unary::kCopy, rotated);
  const Tensor straight = e.binary(Binary::kMul, rotated, r.cos);
  const Tensor crossed =
      r.direction == Direction::kForward
          ? e.binary(Binary::kMul, rotate_pairs(e, rotated, r.pairing, r.direction), r.sin)
          : rotate_pairs(e, e.binary(Binary::kMul, rotated, r.sin), r.pairing, r.direction);
  e.binary(Binary::kAdd, straight, crossed, y.slice(2, 0, rotary));
  if (x.data != y.data && others > 0)
    e.unary(Unary::kCopy, x.slice(2, rotary, others), y.slice(2, rotary, others));
}

template <class Heads, class Args>
Status rotate_both(const Heads& q, const Heads& k, const Heads& q_out, const Heads& k_out,
                   const Args& a, Direction direction, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (q.shape[0] == 0) return;
    const DType type = dtype_of<typename Heads::Elem>;
    const auto angles = [&](const auto& table) {
      return both_members(e, angles_of(e, table, a.positions, a), type, a.pairing);
    };
    const Rotation rotation{angles(a.cos), angles(a.sin), a.pairing, direction};
    if (q.size() != 0) rotate(e, as_heads(q), rotation, as_heads(q_out ? q_out : q));
    if (k.size() != 0) rotate(e, as_heads(k), rotation, as_heads(k_out ? k_out : k));
  });
}

}  // namespace

template <class P>
Status forward(const rope::Forward<P>& a, Stream stream) {
  return rotate_both(a.q, a.k, a.q_out, a.k_out, a, Direction::kForward, stream);
}

template <class P>
Status backward(const rope::Backward<P>& a, Stream stream) {
  return rotate_both(a.dq, a.dk, a.dq_out, a.dk_out, a, Direction::kBackward, stream);
}

template Status forward(const rope::Forward<F32>&, Stream);
template Status forward(const rope::Forward<BF16>&, Stream);
template Status forward(const rope::Forward<F16>&, Stream);
template Status backward(const rope::Backward<F32>&, Stream);
template Status backward(const rope::Backward<BF16>&, Stream);
template Status backward(const rope::Backward<F16>&, Stream);

}  // namespace tigon::naive
