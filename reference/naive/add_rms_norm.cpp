// Forward: x + residual, then rms_norm's steps. Backward: rms_norm's, then the gradient of the
// residual stream is added.
#include "reference/naive/add_rms_norm.h"

#include "reference/naive/eager.h"
#include "reference/naive/rms_norm.h"

namespace tigon::naive::add_rms_norm {

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  const Status added = eagerly(stream, [&](const Eager& e) {
    if (a.x.size() > 0)
      e.binary(Binary::kAdd, as_matrix(a.x), as_matrix(a.residual), as_matrix(a.h));
  });
  if (!added.ok()) return added;
  return rms_norm::forward(norm_of(a), stream);
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  using Elem = typename P::Elem;
  rms_norm::Backward<P> norm = norm_of(a);
  if (!a.dh || a.h.size() == 0) return rms_norm::backward(norm, stream);
  return eagerly(stream, [&](const Eager& e) {
    const Tensor dnorm = e.empty(dtype_of<Elem>, as_matrix(a.dx).shape);
    norm.dx = view(static_cast<Elem*>(dnorm.data), a.h.shape[0], a.h.shape[1]);
    if (const Status s = rms_norm::backward(norm, stream); !s.ok()) fail(s.code, s.reason);
    e.binary(Binary::kAdd, dnorm, as_matrix(a.dh), as_matrix(a.dx));
  });
}

template Status forward(const Forward<F32>&, Stream);
template Status forward(const Forward<BF16>&, Stream);
template Status forward(const Forward<F16>&, Stream);
template Status backward(const Backward<F32>&, Stream);
template Status backward(const Backward<BF16>&, Stream);
template Status backward(const Backward<F16>&, Stream);

}  // namespace tigon::naive::add_rms_norm
