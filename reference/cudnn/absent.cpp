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

#include "reference/cudnn/absent_norm.inc"

}  // namespace rms_norm

namespace layer_norm {

#include "reference/cudnn/absent_norm.inc"

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
