// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/rms_norm.h"

#include "kernels/device/runtime.h"
#include "reference/cudnn/norm_args.h"

namespace tigon::cudnn::rms_norm {

namespace {

constexpr Status kTooLittle = {Status::kInvalidArgument, "cuDNN rms_norm: too little scratch"};

template <class P>
Norm norm_of(const Forward<P>& a) {
  constexpr DType elem = dtype_of<typename P::Elem>;
  return {.kind = Norm::kRms,
          .type = elem,
          .weight_type = a.offset == 0.0f ? elem : DType::kF32,
          .rows = a.x.shape[0],
          .columns = a.x.shape[1],
          .has_weight = bool(a.w)};
}

template <class P>
Norm norm_of(const Backward<P>& a) {
  return {.kind = Norm::kRms,
          .backward = true,
          .type = dtype_of<typename P::Elem>,
          .weight_type = DType::kF32,
          .rows = a.x.shape[0],
          .columns = a.x.shape[1],
          .has_weight = bool(a.w)};
}

template <class Args>
Parts parts_of(const Args& a, void* scratch) {
  const Norm norm = norm_of(a);
  Needs needs;
  needs.gain = a.w && (a.offset != 0.0f || norm.weight_type != norm.type);
  if constexpr (requires { a.dw; }) needs.dw = a.w && !a.dw;
  return cut(norm, needs, scratch);
}

template <class P>
Status refusal(const Forward<P>& a) {
  return accept(a.x, a.w, a.y, a.rstd);
}

template <class P>
Status refusal(const Backward<P>& a) {
  if (a.dw && !a.w) return unsupported("cuDNN gives dw only where there is a w");
  return accept(a.dy, a.x, a.w, a.rstd, a.dx, a.dw);
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, const Scratch& scratch, Stream stream) {
  if (const Status s = refusal(a); !s.ok() || a.x.size() == 0) return s;
  const Parts parts = parts_of(a, scratch.data);
  if (scratch.bytes < parts.bytes) return kTooLittle;
  float eps = a.eps;
  return run_on_gain(
      norm_of(a), a.w, a.offset, parts,
      {{kX, address(a.x)}, {kY, address(a.y)}, {kRstd, address(a.rstd)}, {kEps, &eps}}, stream);
}

template <class P>
Status backward(const Backward<P>& a, const Scratch& scratch, Stream stream) {
  if (const Status s = refusal(a); !s.ok()) return s;
  if (a.x.size() == 0) {
    if (a.dw) device_fill(a.dw.data, 0, static_cast<size_t>(a.dw.size()) * sizeof(float), stream);
    return {};
  }
  const Parts parts = parts_of(a, scratch.data);
  if (scratch.bytes < parts.bytes) return kTooLittle;
  Pointers tensors = {
      {kDy, address(a.dy)}, {kX, address(a.x)}, {kRstd, address(a.rstd)}, {kDx, address(a.dx)}};
  if (a.w) tensors[kDw] = a.dw ? address(a.dw) : parts.dw;
  return run_on_gain(norm_of(a), a.w, a.offset, parts, std::move(tensors), stream);
}

#include "reference/cudnn/norm_instances.inc"

}  // namespace tigon::cudnn::rms_norm
