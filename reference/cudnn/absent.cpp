// A program without cuDNN's fused engines; CMake says why.
#include "reference/cudnn/availability.h"
#include "reference/cudnn/layer_norm.h"
#include "reference/cudnn/rms_norm.h"
#include "reference/cudnn/softmax.h"

namespace tigon::cudnn {
namespace {

constexpr Status kAbsent = {Status::kUnsupported, TIGON_CUDNN_ABSENT};

}  // namespace

const char* absent() { return kAbsent.reason; }

namespace rms_norm {

template <class P>
Status forward(const Forward<P>&, const Scratch&, Stream) {
  return kAbsent;
}
template <class P>
Status backward(const Backward<P>&, const Scratch&, Stream) {
  return kAbsent;
}
template <class Args>
size_t workspace(const Args&) {
  return 0;
}
template Status forward(const Forward<F32>&, const Scratch&, Stream);
template Status forward(const Forward<BF16>&, const Scratch&, Stream);
template Status forward(const Forward<F16>&, const Scratch&, Stream);
template Status backward(const Backward<F32>&, const Scratch&, Stream);
template Status backward(const Backward<BF16>&, const Scratch&, Stream);
template Status backward(const Backward<F16>&, const Scratch&, Stream);
template size_t workspace(const Forward<F32>&);
template size_t workspace(const Forward<BF16>&);
template size_t workspace(const Forward<F16>&);
template size_t workspace(const Backward<F32>&);
template size_t workspace(const Backward<BF16>&);
template size_t workspace(const Backward<F16>&);

}  // namespace rms_norm

namespace layer_norm {

template <class P>
Status forward(const Forward<P>&, const Scratch&, Stream) {
  return kAbsent;
}
template <class P>
Status backward(const Backward<P>&, const Scratch&, Stream) {
  return kAbsent;
}
template <class Args>
size_t workspace(const Args&) {
  return 0;
}
template Status forward(const Forward<F32>&, const Scratch&, Stream);
template Status forward(const Forward<BF16>&, const Scratch&, Stream);
template Status forward(const Forward<F16>&, const Scratch&, Stream);
template Status backward(const Backward<F32>&, const Scratch&, Stream);
template Status backward(const Backward<BF16>&, const Scratch&, Stream);
template Status backward(const Backward<F16>&, const Scratch&, Stream);
template size_t workspace(const Forward<F32>&);
template size_t workspace(const Forward<BF16>&);
template size_t workspace(const Forward<F16>&);
template size_t workspace(const Backward<F32>&);
template size_t workspace(const Backward<BF16>&);
template size_t workspace(const Backward<F16>&);

}  // namespace layer_norm

namespace softmax {

template <class P>
Status forward(const Forward<P>&, Stream) {
  return kAbsent;
}
template <class P>
Status backward(const Backward<P>&, Stream) {
  return kAbsent;
}
template Status forward(const Forward<F32>&, Stream);
template Status forward(const Forward<BF16>&, Stream);
template Status forward(const Forward<F16>&, Stream);
template Status backward(const Backward<F32>&, Stream);
template Status backward(const Backward<BF16>&, Stream);
template Status backward(const Backward<F16>&, Stream);

}  // namespace softmax
}  // namespace tigon::cudnn
