// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy against plain loops in double: a problem, its calls and their comparison.
#pragma once
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <memory>
#include <optional>

#include "kernels/tests/loss_reference.h"

namespace tigon::linear_cross_entropy {

using namespace testing_support;

enum class Dw { kNone, kElem, kFp32, kAccum };

struct Problem {
  LossOptions options = {};
  int64_t rows = 13, hidden = 24, columns = 50;
  int64_t rows_per_chunk = 100;
  int64_t columns_per_chunk = 0;  // of rows, where 0
  int64_t max_valid_rows = -1;
  bool upstream = true, dx = true;
  Dw dw = Dw::kElem;
  std::optional<float> normaliser = {};
  bool bias = false;
};

template <class P>
class LinearCrossEntropy : public testing::Test {
 protected:
  using Elem = typename P::Elem;

  struct Outputs {
    std::vector<float> loss, lse;
    std::vector<Elem> dx;
    std::vector<double> dw;
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
  bool none() const { return p_.options.reduction == Reduction::kNone; }

  void expect_right() {
    SCOPED_TRACE(testing::Message()
                 << "T " << p_.rows << " H " << p_.hidden << " V " << p_.columns << " chunk "
                 << p_.rows_per_chunk << " reduction " << static_cast<int>(p_.options.reduction));
    const Outputs both = run_forward_backward(), alone = run_forward();
    if (testing::Test::HasFatalFailure()) return;
    compare(both);
    if (!dw_holds_logits()) {
      EXPECT_EQ(both.loss, alone.loss);
      EXPECT_EQ(both.lse, alone.lse);
      return;
    }
    expect_joined_elsewhere(both.loss, alone.loss);
    expect_joined_elsewhere(both.lse, alone.lse);
  }
  bool dw_holds_logits() const {
    return p_.columns_per_chunk > 0 && p_.columns_per_chunk < p_.columns &&
           (p_.dw == Dw::kElem || p_.dw == Dw::kFp32);
  }
  // Columns are cut elsewhere than without dw, and the sums of their chunks join in fp32.
  static void expect_joined_elsewhere(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-6f * (1 + std::abs(b[i]))) << "at " << i;
  }

  template <class Args>
  void bind(Args& a, const DeviceArray<Elem>& x, const DeviceArray<Elem>& w,
            const DeviceArray<Elem>& bias, const DeviceArray<int64_t>& target,
            const DeviceArray<float>& loss, const DeviceArray<float>& lse) {
    static_cast<LossOptions&>(a) = p_.options;
    if (p_.bias) a.bias = view(static_cast<const Elem*>(bias.data()), p_.columns);
    if (p_.normaliser) {
      normaliser_ = std::make_unique<DeviceArray<float>>(std::vector<float>{*p_.normaliser});
      a.normaliser = view(static_cast<const float*>(normaliser_->data()), 1);
    }
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
    const DeviceArray<float> dloss(upstream_), dw_fp32(held_);
    const DeviceArray<float> loss(std::vector<float>(static_cast<size_t>(losses()), -1.0f));
    const DeviceArray<float> lse(std::vector<float>(static_cast<size_t>(p_.rows), -1.0f));
    ForwardBackward<P> a;
    bind(a, x, w, bias, target, loss, lse);
    if (p_.upstream) a.dloss = view(static_cast<const float*>(dloss.data()), losses());
    if (p_.dx) a.dx = view(dx.data(), p_.rows, p_.hidden);
    if (p_.dw == Dw::kElem) a.dw = view(dw.data(), p_.columns, p_.hidden);
    if (p_.dw == Dw::kFp32) a.dw_fp32 = view(dw_fp32.data(), p_.columns, p_.hidden);
    if (p_.dw == Dw::kAccum) a.dw_accum = view(dw_fp32.data(), p_.columns, p_.hidden);
    if (p_.bias) a.dbias = view(dbias.data(), p_.columns);
    launch(a, forward_backward<P>);
    Outputs out{loss.download(), lse.download(), dx.download(), {}, dbias.download()};
    if (p_.dw == Dw::kElem)
      for (const Elem v : dw.download()) out.dw.push_back(static_cast<double>(v));
    else
      for (const float v : dw_fp32.download()) out.dw.push_back(static_cast<double>(v));
    return out;
  }

  double at(const std::vector<Elem>& m, int64_t i, int64_t j) const {
    return static_cast<double>(m[static_cast<size_t>(i * p_.hidden + j)]);
  }

  // Logits are rounded to Elem, which may go either way: the tolerance has one unit of that type
  // for each logit and, in dx and dw, for each of its gradients.
  void compare(const Outputs& got) {
    const double u = unit_roundoff(dtype_of<Elem>);
    const auto counted = static_cast<double>(
        p_.rows - std::count(targets_.begin(), targets_.end(), p_.options.ignore_index));
    const double divisor = static_cast<double>(p_.normaliser.value_or(static_cast<float>(counted)));
    const double share =
        p_.options.reduction == Reduction::kMean ? (divisor != 0 ? 1 / divisor : 0) : 1;
    const auto size = static_cast<size_t>(p_.hidden);
    std::vector<double> dw(w_.size()), dw_error(w_.size());
    std::vector<double> dbias(bias_.size()), dbias_error(bias_.size());
    double sum = 0, sum_error = 0;
    for (int64_t t = 0; t < p_.rows; ++t) {
      const auto row = static_cast<size_t>(t);
      std::vector<double> logits(static_cast<size_t>(p_.columns));
      double largest = 0;
      for (int64_t v = 0; v < p_.columns; ++v) {
        double z = static_cast<double>(bias_[static_cast<size_t>(v)]);
        for (int64_t h = 0; h < p_.hidden; ++h) z += at(x_, t, h) * at(w_, v, h);
        logits[static_cast<size_t>(v)] = static_cast<double>(Elem(z));
        largest = std::max(largest, std::abs(z));
      }
      const RowReference r = row_reference(logits, targets_[row], p_.options);
      const bool ignored = targets_[row] == p_.options.ignore_index;
      const double shift = ignored ? 0 : 4 * (u + 1e-5) * (largest + 1);  // of every logit
      EXPECT_TRUE(std::abs(got.lse[row] - r.lse) <= shift) << "lse of row " << t;
      const double loss_error = 2 * shift * (1 + 2 * p_.options.z_loss * std::abs(r.lse));
      if (none()) {
        EXPECT_TRUE(std::abs(got.loss[row] - r.loss) <= loss_error) << "loss of row " << t;
      }
      sum += share * r.loss;
      sum_error += share * loss_error;
      const double g = share * (p_.upstream ? upstream_[none() ? row : 0] : 1.0);
      std::vector<double> dx(size), dx_error(size);
      for (int64_t v = 0; v < p_.columns; ++v) {
        const auto i = static_cast<size_t>(v);
        const double gradient = g * r.gradient[i];
        const double error = std::abs(g) * (2 * shift + 2 * u) * r.gradient_size[i];
        dbias[i] += gradient;
        dbias_error[i] += error;
        for (int64_t h = 0; h < p_.hidden; ++h) {
          const auto xi = static_cast<size_t>(h), wi = static_cast<size_t>(v * p_.hidden + h);
          dx[xi] += gradient * at(w_, v, h);
          dx_error[xi] += error * std::abs(at(w_, v, h));
          dw[wi] += gradient * at(x_, t, h);
          dw_error[wi] += error * std::abs(at(x_, t, h));
        }
      }
      for (int64_t h = 0; h < p_.hidden && p_.dx; ++h) {
        const auto i = static_cast<size_t>(h);
        ASSERT_TRUE(std::abs(at(got.dx, t, h) - dx[i]) <= dx_error[i] + u * std::abs(dx[i]))
            << "dx at " << t << ", " << h << ": " << at(got.dx, t, h) << ", want " << dx[i];
      }
    }
    if (!none()) {
      EXPECT_TRUE(std::abs(got.loss[0] - sum) <= sum_error) << got.loss[0] << ", want " << sum;
    }
    for (size_t i = 0; i < dw.size() && p_.dw != Dw::kNone; ++i) {
      const double held = p_.dw == Dw::kAccum ? static_cast<double>(held_[i]) : 0;
      const double rounding =
          (p_.dw == Dw::kElem ? u : 0x1p-22) * (std::abs(dw[i]) + std::abs(held));
      ASSERT_TRUE(std::abs(got.dw[i] - held - dw[i]) <= dw_error[i] + rounding)
          << "dw at " << i << ": " << got.dw[i] << ", want " << held + dw[i];
    }
    for (size_t i = 0; i < dbias.size() && p_.bias; ++i) {
      ASSERT_TRUE(std::abs(static_cast<double>(got.dbias[i]) - dbias[i]) <= dbias_error[i])
          << "dbias at " << i << ": " << got.dbias[i] << ", want " << dbias[i];
    }
    EXPECT_TRUE(p_.dx || got.dx == x_) << "dx was left out and is written";
  }

  Problem p_;
  std::vector<Elem> x_, w_, bias_;
  std::vector<int64_t> targets_;
  std::vector<float> upstream_;
  std::vector<float> held_;  // by the fp32 gradient
  std::unique_ptr<DeviceArray<float>> normaliser_;
};

using Policies = testing::Types<F32, BF16, F16>;

}  // namespace tigon::linear_cross_entropy
