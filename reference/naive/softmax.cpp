// SPDX-License-Identifier: Apache-2.0
// Forward: softmax. Backward: softmax_backward. Rows that lie apart are copied together first.
#include "reference/naive/softmax.h"

#include "reference/naive/eager.h"

namespace tigon::naive {

namespace {

template <class View>
Tensor packed(const Eager& e, const View& v) {
  const Tensor t = as_matrix(v);
  return v.contiguous() ? t : e.unary(Unary::kCopy, t);
}

// Calls step(result) with memory for a packed result, which ends in v.
template <class View, class Step>
void into(const Eager& e, const View& v, const Step& step) {
  const Tensor t = as_matrix(v);
  if (v.contiguous()) return step(t);
  const Tensor result = e.empty(t.type, t.shape);
  step(result);
  e.unary(Unary::kCopy, result, t);
}

}  // namespace

template <class P>
Status forward(const softmax::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.x.size() == 0) return;
    const Tensor x = packed(e, a.x);
    into(e, a.y, [&](const Tensor& y) { e.softmax(x, y); });
  });
}

template <class P>
Status backward(const softmax::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.y.size() == 0) return;
    const Tensor y = packed(e, a.y), dy = packed(e, a.dy);
    into(e, a.dx, [&](const Tensor& dx) { e.softmax_backward(y, dy, dx); });
  });
}

template Status forward(const softmax::Forward<F32>&, Stream);
template Status forward(const softmax::Forward<BF16>&, Stream);
template Status forward(const softmax::Forward<F16>&, Stream);
template Status backward(const softmax::Backward<F32>&, Stream);
template Status backward(const softmax::Backward<BF16>&, Stream);
template Status backward(const softmax::Backward<F16>&, Stream);

}  // namespace tigon::naive
