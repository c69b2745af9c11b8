// cos and sin are rounded to the type of q and repeated for both halves of a head, then every step
// is one over q's or k's size: negate, concatenate, two products, one sum.
#include "reference/naive/rope.h"

#include "reference/naive/eager.h"

namespace tigon::naive::rope {
namespace {

// [T, D / 2] fp32 to [T, 1, D] of `type`, both halves the same.
template <class View>
Tensor both_halves(const Eager& e, const View& angles, DType type) {
  const int64_t tokens = angles.shape[0], half = angles.shape[1];
  const Tensor both = e.empty(type, {1, tokens, 2 * half});
  e.unary(Unary::kCopy, as_matrix(angles), both.slice(2, 0, half));
  e.unary(Unary::kCopy, as_matrix(angles), both.slice(2, half, half));
  return {type, both.data, {tokens, 1, 2 * half}, {2 * half, 2 * half, 1}, both.memory};
}

enum class Turn { kForward, kBackward };

// (-x2, x1) of the halves (x1, x2); backward, its transpose (x2, -x1).
Tensor rotate_half(const Eager& e, const Tensor& x, Turn turn) {
  const int64_t half = x.shape[2] / 2;
  const Tensor y = e.empty(x.type, x.shape);
  const bool forward = turn == Turn::kForward;
  e.unary(forward ? Unary::kNegate : Unary::kCopy, x.slice(2, half, half), y.slice(2, 0, half));
  e.unary(forward ? Unary::kCopy : Unary::kNegate, x.slice(2, 0, half), y.slice(2, half, half));
  return y;
}

void rotate(const Eager& e, const Tensor& x, const Tensor& cos, const Tensor& sin, Turn turn) {
  const Tensor straight = e.binary(Binary::kMul, x, cos);
  const Tensor crossed = turn == Turn::kForward
                             ? e.binary(Binary::kMul, rotate_half(e, x, turn), sin)
                             : rotate_half(e, e.binary(Binary::kMul, x, sin), turn);
  e.binary(Binary::kAdd, straight, crossed, x);
}

template <class Heads, class Angles>
Status rotate_both(const Heads& q, const Heads& k, const Angles& cos, const Angles& sin, Turn turn,
                   Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (cos.size() == 0) return;
    const DType type = dtype_of<typename Heads::Elem>;
    const Tensor c = both_halves(e, cos, type), s = both_halves(e, sin, type);
    for (const Heads& x : {q, k})
      if (x.size() != 0) rotate(e, as_heads(x), c, s, turn);
  });
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  return rotate_both(a.q, a.k, a.cos, a.sin, Turn::kForward, stream);
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  return rotate_both(a.dq, a.dk, a.cos, a.sin, Turn::kBackward, stream);
}

template Status forward(const Forward<F32>&, Stream);
template Status forward(const Forward<BF16>&, Stream);
template Status forward(const Forward<F16>&, Stream);
template Status backward(const Backward<F32>&, Stream);
template Status backward(const Backward<BF16>&, Stream);
template Status backward(const Backward<F16>&, Stream);

}  // namespace tigon::naive::rope
