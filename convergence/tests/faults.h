// SPDX-License-Identifier: Apache-2.0
// Planted faults: tables of ops in which one pass is wrong in a way that kernels have been wrong.
#pragma once
#include <cmath>
#include <vector>

#include "convergence/scaled_ops.h"

namespace tigon::convergence {

template <class P>
struct Faults {
  using Elem = typename P::Elem;
  static Ops<P> right() { return fused_ops<P>(); }

  // Mean square over H - 1 instead of H.
  static Ops<P> wrong_normaliser() {
    Ops<P> ops = right();
    ops.template replace<rms_norm::Forward<P>>([](const rms_norm::Forward<P>& a, Stream stream) {
      const Status s = right().run(a, stream);
      const auto h = static_cast<double>(a.x.shape[1]);
      scale(a.y.data, a.y.size(), std::sqrt((h - 1) / h));
      scale(a.rstd.data, a.rstd.size(), std::sqrt((h - 1) / h));
      return s;
    });
    return ops;
  }

  // The weight's gradient is not computed.
  static Ops<P> missing_norm_gradient() {
    Ops<P> ops = right();
    ops.template replace<rms_norm::Backward<P>>([](const rms_norm::Backward<P>& a, Stream stream) {
      const Status s = right().run(a, stream);
      scale(a.dw.data, a.dw.size(), 0.0);
      return s;
    });
    return ops;
  }

  // Halves of a head take each other's place before they are turned.
  static Ops<P> swapped_rotary_halves() {
    Ops<P> ops = right();
    ops.template replace<rope::Forward<P>>([](const rope::Forward<P>& a, Stream stream) {
      for (const View<Elem, 3>& x : {a.q, a.k}) swap_halves(x);
      const Status s = right().run(a, stream);
      for (const View<Elem, 3>& x : {a.q, a.k}) swap_halves(x);
      return s;
    });
    return ops;
  }

  // Backward turns the same way as forward.
  static Ops<P> rotary_backward_turns_forward() {
    Ops<P> ops = right();
    ops.template replace<rope::Backward<P>>([](const rope::Backward<P>& a, Stream stream) {
      rope::Forward<P> same_way;
      same_way.q = a.dq;
      same_way.k = a.dk;
      same_way.cos = a.cos;
      same_way.sin = a.sin;
      return right().run(same_way, stream);
    });
    return ops;
  }

  // The last token's row is not computed.
  static Ops<P> dropped_tail_row() {
    Ops<P> ops = right();
    ops.template replace<swiglu::Forward<P>>([](const swiglu::Forward<P>& a, Stream stream) {
      const Status s = right().run(a, stream);
      const int64_t row = a.y.shape[1];
      scale(a.y.data + a.y.size() - row, row, 0.0);
      return s;
    });
    return ops;
  }

  static Ops<P> swapped_gate_gradients() {
    Ops<P> ops = right();
    ops.template replace<swiglu::Backward<P>>([](const swiglu::Backward<P>& a, Stream stream) {
      swiglu::Backward<P> swapped = a;
      std::swap(swapped.da, swapped.db);
      // In place the two gradients would overwrite each other's input.
      const int64_t row = a.da.stride[0], size = a.da.shape[0] * row;
      DeviceBuffer copy(static_cast<size_t>(size) * sizeof(Elem));
      device_copy(copy.data(), a.a.data, copy.bytes(), stream);
      swapped.a.data = copy.template as<Elem>();
      swapped.b.data = copy.template as<Elem>() + (a.b.data - a.a.data);
      const Status s = right().run(swapped, stream);
      device_synchronize();
      return s;
    });
    return ops;
  }

  // The last chunk of rows gives the hidden states no gradient.
  static Ops<P> lost_last_chunk() {
    Ops<P> ops = right();
    ops.template replace<linear_cross_entropy::ForwardBackward<P>>(
        [](const linear_cross_entropy::ForwardBackward<P>& a, Stream s) {
          const Status status = right().run(a, s);
          const int64_t rows = 16, columns = a.dx.shape[1];
          scale(a.dx.data + (a.dx.shape[0] - rows) * columns, rows * columns, 0.0);
          return status;
        });
    return ops;
  }

  // One token too many in the denominator of the mean.
  static Ops<P> off_by_one_mean() {
    Ops<P> ops = right();
    ops.template replace<linear_cross_entropy::ForwardBackward<P>>(
        [](const linear_cross_entropy::ForwardBackward<P>& a, Stream s) {
          const Status status = right().run(a, s);
          const auto n = static_cast<double>(a.x.shape[0]);
          scale(a.loss.data, 1, n / (n + 1));
          scale(a.dx.data, a.dx.size(), n / (n + 1));
          scale(a.dw.data, a.dw.size(), n / (n + 1));
          return status;
        });
    return ops;
  }

 private:
  static void swap_halves(const View<Elem, 3>& x) {
    const int64_t row = x.stride[0], half = x.shape[2] / 2;
    const int64_t size = (x.shape[0] - 1) * row + x.shape[1] * x.shape[2];
    edit(x.data, size, [&](std::vector<Elem>& v) {
      for (int64_t t = 0; t < x.shape[0]; ++t)
        for (int64_t head = 0; head < x.shape[1]; ++head)
          for (int64_t j = 0; j < half; ++j) {
            const auto first = static_cast<size_t>(t * row + head * x.stride[1] + j);
            std::swap(v[first], v[first + static_cast<size_t>(half)]);
          }
    });
  }
};

}  // namespace tigon::convergence
