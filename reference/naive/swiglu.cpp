// Each step rounds to the storage type: silu, product; silu's derivative is one step, as in
// autograd.
#include "reference/naive/swiglu.h"

#include "reference/naive/eager.h"

namespace tigon::naive::swiglu {

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.y.size() == 0) return;
    const Tensor s = e.unary(Unary::kSilu, as_matrix(a.a));
    e.binary(Binary::kMul, s, as_matrix(a.b), as_matrix(a.y));
  });
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.dy.size() == 0) return;
    const Tensor gate = as_matrix(a.a), dy = as_matrix(a.dy);
    // da and db may be a and b: both are read before they are written.
    const Tensor ds = e.binary(Binary::kMul, dy, as_matrix(a.b));
    e.binary(Binary::kMul, dy, e.unary(Unary::kSilu, gate), as_matrix(a.db));
    e.binary(Binary::kSiluBackward, gate, ds, as_matrix(a.da));
  });
}

template Status forward(const Forward<F32>&, Stream);
template Status forward(const Forward<BF16>&, Stream);
template Status forward(const Forward<F16>&, Stream);
template Status backward(const Backward<F32>&, Stream);
template Status backward(const Backward<BF16>&, Stream);
template Status backward(const Backward<F16>&, Stream);

}  // namespace tigon::naive::swiglu
