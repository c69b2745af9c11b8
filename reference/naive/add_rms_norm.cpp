// SPDX-License-Identifier: Apache-2.0
// Forward: x + residual, then rms_norm's steps. Backward: rms_norm's, then the gradient of the
// residual stream is added.
#include "reference/naive/add_rms_norm.h"

#include "reference/naive/eager.h"
#include "reference/naive/rms_norm.h"

namespace tigon::naive {

template <class P>
Status forward(const add_rms_norm::Forward<P>& a, Stream stream) {
  const Status added = eagerly(stream, [&](const Eager& e) {
    if (a.x.size() > 0)
      e.binary(Binary::kAdd, as_matrix(a.x), as_matrix(a.residual), as_matrix(a.h));
  });
  if (!added.ok()) return added;
  return naive::forward(norm_of(a), stream);
}

template <class P>
Status backward(const add_rms_norm::Backward<P>& a, Stream stream) {
  using Elem = typename P::Elem;
  rms_norm::Backward<P> norm = norm_of(a);
  if (!a.dh || a.h.size() == 0) return naive::backward(norm, stream);
  return eagerly(stream, [&](const Eager& e) {
    const Tensor dnorm = e.empty(dtype_of<Elem>, as_matrix(a.dx).shape);
    norm.dx = view(static_cast<Elem*>(dnorm.data), a.h.shape[0], a.h.shape[1]);
    if (const Status s = naive::backward(norm, stream); !s.ok()) fail(s.code, s.reason);
    e.binary(Binary::kAdd, dnorm, as_matrix(a.dh), as_matrix(a.dx));
  });
}

template Status forward(const add_rms_norm::Forward<F32>&, Stream);
template Status forward(const add_rms_norm::Forward<BF16>&, Stream);
template Status forward(const add_rms_norm::Forward<F16>&, Stream);
template Status backward(const add_rms_norm::Backward<F32>&, Stream);
template Status backward(const add_rms_norm::Backward<BF16>&, Stream);
template Status backward(const add_rms_norm::Backward<F16>&, Stream);

}  // namespace tigon::naive
