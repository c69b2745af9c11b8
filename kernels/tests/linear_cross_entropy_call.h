// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy: drawn values and the calls of both passes on them.
#pragma once
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include "kernels/tests/device_array.h"

namespace tigon::linear_cross_entropy {

using namespace testing_support;

enum class Dw { kElem, kFp32, kAccum };

struct Problem {
  LossOptions options = {};
  int64_t rows = 13, hidden = 24, columns = 50;
  int64_t rows_per_chunk = 100;
  int64_t columns_per_chunk = 0;  // of rows, where 0
  int64_t max_valid_rows = -1;
  bool dx = true;
  Dw dw = Dw::kElem;
  bool bias = false;
};

template <class P>
class LinearCrossEntropy : public testing::Test {
 protected:
  using Elem = typename P::Elem;

  struct Outputs {
    std::vector<float> loss, lse;
    std::vector<Elem> dx, dw;
    std::vector<float> dbias;
  };

  void make(const Problem& problem) {
    p_ = problem;
    x_ = random_values<Elem>(static_cast<size_t>(p_.rows * p_.hidden), 1.0f, 1);
    w_ = random_values<Elem>(static_cast<size_t>(p_.columns * p_.hidden), 0.5f, 2);
    targets_ = random_targets(p_.rows, p_.columns, p_.options.ignore_index);
    upstream_ = random_values<float>(static_cast<size_t>(losses()), 1.0f, 3);
    held_ = random_values<float>(w_.size(), 1.0f, 4);
    bias_.assign(static_cast<size_t>(p_.columns), Elem(0.0f));
    if (p_.bias) bias_ = random_values<Elem>(bias_.size(), 1.0f, 5);
  }
  int64_t losses() const { return p_.options.reduction == Reduction::kNone ? p_.rows : 1; }

  template <class Args>
  void bind(Args& a, const DeviceArray<Elem>& x, const DeviceArray<Elem>& w,
            const DeviceArray<Elem>& bias, const DeviceArray<int64_t>& target,
            const DeviceArray<float>& loss, const DeviceArray<float>& lse) {
    static_cast<LossOptions&>(a) = p_.options;
    if (p_.bias) a.bias = view(static_cast<const Elem*>(bias.data()), p_.columns);
    a.logits_bytes =
        p_.rows_per_chunk * ((p_.columns + 7) / 8 * 8) * static_cast<int64_t>(sizeof(Elem));
    a.max_valid_rows = p_.max_valid_rows;
    if (p_.columns_per_chunk > 0) {
      a.split = Split::kVocabulary;
      a.logits_bytes =
          p_.columns_per_chunk * std::max<int64_t>(1, p_.rows) * static_cast<int64_t>(sizeof(Elem));
    }
    a.x = view(static_cast<const Elem*>(x.data()), p_.rows, p_.hidden);
    a.w = view(static_cast<const Elem*>(w.data()), p_.columns, p_.hidden);
    a.target = view(static_cast<const int64_t*>(target.data()), p_.rows);
    a.loss = view(loss.data(), losses());
    a.lse = view(lse.data(), p_.rows);
  }

  Outputs run_forward() {
    const DeviceArray<Elem> x(x_), w(w_), bias(bias_);
    const DeviceArray<int64_t> target(targets_);
    const DeviceArray<float> loss(std::vector<float>(static_cast<size_t>(losses()), -1.0f));
    const DeviceArray<float> lse(std::vector<float>(static_cast<size_t>(p_.rows), -1.0f));
    Forward<P> a;
    bind(a, x, w, bias, target, loss, lse);
    launch(a, forward<P>);
    return {loss.download(), lse.download(), {}, {}, {}};
  }

  Outputs run_forward_backward() {
    const DeviceArray<Elem> x(x_), w(w_), bias(bias_), dx(x_), dw(w_);
    const DeviceArray<float> dbias(std::vector<float>(bias_.size(), -1.0f));
    const DeviceArray<int64_t> target(targets_);
    const DeviceArray<float> dloss(upstream_), dw_accum(held_);
    const DeviceArray<float> loss(std::vector<float>(static_cast<size_t>(losses()), -1.0f));
    const DeviceArray<float> lse(std::vector<float>(static_cast<size_t>(p_.rows), -1.0f));
    ForwardBackward<P> a;
    bind(a, x, w, bias, target, loss, lse);
    a.dloss = view(static_cast<const float*>(dloss.data()), losses());
    if (p_.dx) a.dx = view(dx.data(), p_.rows, p_.hidden);
    if (p_.dw == Dw::kElem) a.dw = view(dw.data(), p_.columns, p_.hidden);
    if (p_.dw == Dw::kAccum) a.dw_accum = view(dw_accum.data(), p_.columns, p_.hidden);
    if (p_.bias) a.dbias = view(dbias.data(), p_.columns);
    launch(a, forward_backward<P>);
    return {loss.download(), lse.download(), dx.download(), dw.download(), dbias.download()};
  }

  Problem p_;
  std::vector<Elem> x_, w_, bias_;
  std::vector<int64_t> targets_;
  std::vector<float> upstream_;
  std::vector<float> held_;  // by the fp32 gradient
};

using Policies = testing::Types<F32, BF16, F16>;

}  // namespace tigon::linear_cross_entropy
