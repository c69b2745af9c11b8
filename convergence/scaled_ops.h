// SPDX-License-Identifier: Apache-2.0
// Tables of ops in which one result is too large or too small by a factor, and what edits device
// memory for that: faults that are planted above the kernels.
#pragma once
#include <string>
#include <vector>

#include "convergence/ops.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {

// Changes n elements of device memory: f(values). Not while a stream is captured.
template <class T, class F>
void edit(T* data, int64_t n, F&& f) {
  std::vector<T> values(static_cast<size_t>(n));
  const size_t bytes = values.size() * sizeof(T);
  device_synchronize();
  device_download(values.data(), data, bytes);
  f(values);
  device_upload(data, values.data(), bytes);
  device_synchronize();
}

template <class T>
void scale(T* data, int64_t n, double factor) {
  edit(data, n, [&](std::vector<T>& v) {
    for (T& x : v) x = T(static_cast<double>(x) * factor);
  });
}

// The kernels, with one result times a factor in thousandths.
template <class P>
class ScaledOps {
 public:
  template <int kFactor>
  static Ops<P> loss_dx() {
    return replaced<Loss>([](const Loss& a, Stream stream) {
      const Status s = fused_ops<P>().run(a, stream);
      scale(a.dx.data, a.dx.size(), kFactor * 1e-3);
      return s;
    });
  }
  template <int kFactor>
  static Ops<P> loss_dw() {
    return replaced<Loss>([](const Loss& a, Stream stream) {
      const Status s = fused_ops<P>().run(a, stream);
      scale(a.dw.data, a.dw.size(), kFactor * 1e-3);
      return s;
    });
  }
  template <int kFactor>
  static Ops<P> norm_dx() {
    return replaced<Norm>([](const Norm& a, Stream stream) {
      const Status s = fused_ops<P>().run(a, stream);
      scale(a.dx.data, a.dx.size(), kFactor * 1e-3);
      return s;
    });
  }
  template <int kFactor>
  static Ops<P> norm_dw() {
    return replaced<Norm>([](const Norm& a, Stream stream) {
      const Status s = fused_ops<P>().run(a, stream);
      scale(a.dw.data, a.dw.size(), kFactor * 1e-3);
      return s;
    });
  }
  // da and db lie in the rows of one tensor.
  template <int kFactor>
  static Ops<P> swiglu_gradients() {
    return replaced<Gate>([](const Gate& a, Stream stream) {
      const Status s = fused_ops<P>().run(a, stream);
      scale(a.da.data, a.da.shape[0] * a.da.stride[0], kFactor * 1e-3);
      return s;
    });
  }

 private:
  using Loss = linear_cross_entropy::ForwardBackward<P>;
  using Norm = rms_norm::Backward<P>;
  using Gate = swiglu::Backward<P>;

  template <class Args>
  static Ops<P> replaced(Status (*function)(const Args&, Stream)) {
    Ops<P> ops = fused_ops<P>();
    ops.template replace<Args>(function);
    return ops;
  }
};

}  // namespace tigon::convergence
