// SPDX-License-Identifier: Apache-2.0
// Each step rounds to the storage type: silu, product; silu's derivative is one step, as in
// autograd; with a multiplier in fp32.
#include "reference/naive/swiglu.h"

#include "reference/naive/gated.h"

namespace tigon::naive {

template <class P>
Status forward(const swiglu::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.y.size() == 0) return;
    const Halves in = halves(a.a, a.b, a.layout);
    const Tensor s = e.unary(Unary::kSilu, multiplied(e, in.gate, a.gate_multiplier));
    e.binary(Binary::kMul, s, multiplied(e, in.up, a.down_multiplier), as_matrix(a.y));
  });
}

template <class P>
Status backward(const swiglu::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.dy.size() == 0) return;
    const Halves in = halves(a.a, a.b, a.layout), out = halves(a.da, a.db, a.layout);
    const Tensor gate = multiplied(e, in.gate, a.gate_multiplier);
    const Tensor dy = multiplied(e, as_matrix(a.dy), a.down_multiplier);
    // da and db may be a and b: both are read before they are written.
    const Tensor ds = multiplied(e, e.binary(Binary::kMul, dy, in.up), a.gate_multiplier);
    e.binary(Binary::kMul, dy, e.unary(Unary::kSilu, gate), out.up);
    e.binary(Binary::kSiluBackward, gate, ds, out.gate);
  });
}

template Status forward(const swiglu::Forward<F32>&, Stream);
template Status forward(const swiglu::Forward<BF16>&, Stream);
template Status forward(const swiglu::Forward<F16>&, Stream);
template Status backward(const swiglu::Backward<F32>&, Stream);
template Status backward(const swiglu::Backward<BF16>&, Stream);
template Status backward(const swiglu::Backward<F16>&, Stream);

}  // namespace tigon::naive
