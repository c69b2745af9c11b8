// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/layer_norm.h"

#include "kernels/device/runtime.h"
#include "reference/cudnn/norm_args.h"

namespace tigon::cudnn::layer_norm {

namespace {

constexpr Status kTooLittle = {Status::kInvalidArgument, "cuDNN layer_norm: too little scratch"};

template <class P>
Norm norm_of(const Forward<P>& a) {
  constexpr DType elem = dtype_of<typename P::Elem>;
  return {.kind = Norm::kLayer,
          .type = elem,
          .weight_type = elem,
          .rows = a.x.shape[0],
          .columns = a.x.shape[1],
          .has_weight = bool(a.w),
          .has_bias = bool(a.b)};
}

template <class P>
Norm norm_of(const Backward<P>& a) {
  return {.kind = Norm::kLayer,
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
  needs.gain = a.w && norm.weight_type != norm.type;
  if constexpr (requires { a.dw; }) {
    needs.dw = a.w && !a.dw;
    needs.db = a.w && !a.db;
  }
  return cut(norm, needs, scratch);
}

template <class P>
Status refusal(const Forward<P>& a) {
  if (a.b && !a.w) return unsupported("cuDNN takes b only where there is a w");
  return accept(a.x, a.w, a.b, a.y, a.mean, a.rstd);
}

template <class P>
Status refusal(const Backward<P>& a) {
  if ((a.dw || a.db) && !a.w) return unsupported("cuDNN gives dw and db only where there is a w");
  return accept(a.dy, a.x, a.w, a.mean, a.rstd, a.dx, a.dw, a.db);
}

template <class View>
void fill_zero(const View& v, Stream stream) {
  if (v) device_fill(v.data, 0, static_cast<size_t>(v.size()) * sizeof(float), stream);
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, const Scratch& scratch, Stream stream) {
  if (const Status s = refusal(a); !s.ok() || a.x.size() == 0) return s;
  const Parts parts = parts_of(a, scratch.data);
  if (scratch.bytes < parts.bytes) return kTooLittle;
  float eps = a.eps;
  Pointers tensors = {{kX, address(a.x)},
                      {kY, address(a.y)},
                      {kMean, address(a.mean)},
                      {kRstd, address(a.rstd)},
                      {kEps, &eps}};
  if (a.b) tensors[kB] = address(a.b);
  return run_on_gain(norm_of(a), a.w, 0.0f, parts, std::move(tensors), stream);
}

template <class P>
Status backward(const Backward<P>& a, const Scratch& scratch, Stream stream) {
  if (const Status s = refusal(a); !s.ok()) return s;
  if (a.x.size() == 0) {
    fill_zero(a.dw, stream);
    fill_zero(a.db, stream);
    return {};
  }
  const Parts parts = parts_of(a, scratch.data);
  if (scratch.bytes < parts.bytes) return kTooLittle;
  Pointers tensors = {{kDy, address(a.dy)},
                      {kX, address(a.x)},
                      {kMean, address(a.mean)},
                      {kRstd, address(a.rstd)},
                      {kDx, address(a.dx)}};
  if (a.w) tensors[kDw] = a.dw ? address(a.dw) : parts.dw;
  if (a.w) tensors[kDb] = a.db ? address(a.db) : parts.db;
  return run_on_gain(norm_of(a), a.w, 0.0f, parts, std::move(tensors), stream);
}

#include "reference/cudnn/norm_instances.inc"

}  // namespace tigon::cudnn::layer_norm
