// SPDX-License-Identifier: Apache-2.0
// gelu by tanh is a sigmoid(z), z = a q, q = 2 sqrt(2 / pi) (1 + 0.044715 a^2), and so silu(z) / q:
// a chain of primitives that keeps its digits for negative a, where 1 + tanh(z / 2) loses them. In
// fp32 between the casts. Through erf the primitives would lose those digits: not offered.
#include "reference/naive/geglu.h"

#include "reference/naive/gated.h"

namespace tigon::naive {

using tigon::geglu::Approximate;

namespace {

constexpr float kSlope = 1.5957691216f, kCubic = 0.044715f;

struct Gelu {
  Tensor a, q, z, value;  // fp32
};

Gelu gelu(const Eager& e, const Tensor& gate) {
  Gelu g;
  g.a = e.cast(gate, DType::kF32);
  const Tensor square = e.binary(Binary::kMul, g.a, g.a);
  g.q = e.binary(Binary::kAdd, e.binary(Binary::kMul, square, kSlope * kCubic), kSlope);
  g.z = e.binary(Binary::kMul, g.q, g.a);
  g.value = e.binary(Binary::kDiv, e.unary(Unary::kSilu, g.z), g.q);
  return g;
}

// d gelu, times dy: dy (silu'(z) z' - gelu q') / q with q' = 2 kSlope kCubic a, z' = q + a q'.
Tensor gelu_backward(const Eager& e, const Gelu& g, const Tensor& dy) {
  const Tensor dq = e.binary(Binary::kMul, g.a, 2 * kSlope * kCubic);
  const Tensor dz = e.binary(Binary::kAdd, e.binary(Binary::kMul, g.a, dq), g.q);
  const Tensor through_z = e.binary(Binary::kMul, e.binary(Binary::kSiluBackward, g.z, dy), dz);
  const Tensor through_q = e.binary(Binary::kMul, e.binary(Binary::kMul, g.value, dq), dy);
  return e.binary(Binary::kDiv, e.binary(Binary::kSub, through_z, through_q), g.q);
}

const char* const kNoErf = "naive: no chain of primitives keeps the digits of erf's tail";

}  // namespace

template <class P>
Status forward(const geglu::Forward<P>& a, Stream stream) {
  if (a.approximate == Approximate::kNone) return unsupported(kNoErf);
  return eagerly(stream, [&](const Eager& e) {
    if (a.y.size() == 0) return;
    const Halves in = halves(a.a, a.b, a.layout);
    const Tensor up = multiplied(e, e.cast(in.up, DType::kF32), a.down_multiplier);
    const Gelu g = gelu(e, multiplied(e, in.gate, a.gate_multiplier));
    e.unary(Unary::kCopy, e.binary(Binary::kMul, g.value, up), as_matrix(a.y));
  });
}

template <class P>
Status backward(const geglu::Backward<P>& a, Stream stream) {
  if (a.approximate == Approximate::kNone) return unsupported(kNoErf);
  return eagerly(stream, [&](const Eager& e) {
    if (a.dy.size() == 0) return;
    const Halves in = halves(a.a, a.b, a.layout), out = halves(a.da, a.db, a.layout);
    const Tensor dy = multiplied(e, e.cast(as_matrix(a.dy), DType::kF32), a.down_multiplier);
    const Tensor up = multiplied(e, e.cast(in.up, DType::kF32), a.gate_multiplier);
    const Gelu g = gelu(e, multiplied(e, in.gate, a.gate_multiplier));
    // da and db may be a and b: both are read before they are written.
    const Tensor da = gelu_backward(e, g, e.binary(Binary::kMul, dy, up));
    e.unary(Unary::kCopy, e.binary(Binary::kMul, dy, g.value), out.up);
    e.unary(Unary::kCopy, da, out.gate);
  });
}

template Status forward(const geglu::Forward<F32>&, Stream);
template Status forward(const geglu::Forward<BF16>&, Stream);
template Status forward(const geglu::Forward<F16>&, Stream);
template Status backward(const geglu::Backward<F32>&, Stream);
template Status backward(const geglu::Backward<BF16>&, Stream);
template Status backward(const geglu::Backward<F16>&, Stream);

}  // namespace tigon::naive
