// SPDX-License-Identifier: Apache-2.0
// By the older API, cudnnSoftmaxForward and cudnnSoftmaxBackward, as the unfused baseline: cuDNN
// 9.19's graph API has no engine for it, because nothing may read what a reduction gives.
#include "reference/cudnn/softmax.h"

#include "reference/naive/eager.h"

namespace tigon::cudnn::softmax {

namespace {

constexpr Status kGaps = {Status::kUnsupported, "cuDNN's softmax takes rows without gaps"};

}  // namespace

template <class P>
Status forward(const Forward<P>& a, const Scratch&, Stream stream) {
  if (!a.x.contiguous() || !a.y.contiguous()) return kGaps;
  return naive::eagerly(stream, [&](const naive::Eager& e) {
    if (a.x.size() > 0) e.softmax(naive::as_matrix(a.x), naive::as_matrix(a.y));
  });
}

template <class P>
Status backward(const Backward<P>& a, const Scratch&, Stream stream) {
  if (!a.dy.contiguous() || !a.y.contiguous() || !a.dx.contiguous()) return kGaps;
  return naive::eagerly(stream, [&](const naive::Eager& e) {
    if (a.y.size() > 0)
      e.softmax_backward(naive::as_matrix(a.y), naive::as_matrix(a.dy), naive::as_matrix(a.dx));
  });
}

template Status forward(const Forward<F32>&, const Scratch&, Stream);
template Status forward(const Forward<BF16>&, const Scratch&, Stream);
template Status forward(const Forward<F16>&, const Scratch&, Stream);
template Status backward(const Backward<F32>&, const Scratch&, Stream);
template Status backward(const Backward<BF16>&, const Scratch&, Stream);
template Status backward(const Backward<F16>&, const Scratch&, Stream);

}  // namespace tigon::cudnn::softmax
