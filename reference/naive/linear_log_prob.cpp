// SPDX-License-Identifier: Apache-2.0
// logits = x w^T + bias are whole and rounded to the storage type, and so is their gradient.
#include "reference/naive/linear_log_prob.h"

#include "reference/naive/linear_head.h"
#include "reference/naive/log_prob.h"

namespace tigon::naive {
template <class P>
Status forward(const linear_log_prob::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    refuse_row_bound(a);
    const Tensor logits = logits_of(e, a);
    log_prob::Forward<P> f;
    static_cast<log_prob::Options&>(f) = a;
    f.logits = as_view<const typename P::Elem>(logits);
    f.target = a.target;
    f.logp = a.logp;
    f.lse = a.lse;
    f.entropy = a.entropy;
    check(naive::forward(f, stream));
  });
}

template <class P>
Status backward(const linear_log_prob::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    refuse_row_bound(a);
    const Tensor logits = logits_of(e, a), dlogits = e.empty(logits.type, logits.shape);
    log_prob::Backward<P> b;
    static_cast<log_prob::Options&>(b) = a;
    b.logits = as_view<const typename P::Elem>(logits);
    b.target = a.target;
    b.lse = a.lse;
    b.dlogp = a.dlogp;
    b.dentropy = a.dentropy;
    b.entropy = a.entropy;
    b.dlogits = as_view<typename P::Elem>(dlogits);
    check(naive::backward(b, stream));
    write_gradients(e, a, dlogits);
  });
}

template Status forward(const linear_log_prob::Forward<F32>&, Stream);
template Status forward(const linear_log_prob::Forward<BF16>&, Stream);
template Status forward(const linear_log_prob::Forward<F16>&, Stream);
template Status backward(const linear_log_prob::Backward<F32>&, Stream);
template Status backward(const linear_log_prob::Backward<BF16>&, Stream);
template Status backward(const linear_log_prob::Backward<F16>&, Stream);

}  // namespace tigon::naive
