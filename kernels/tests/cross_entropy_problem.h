// SPDX-License-Identifier: Apache-2.0
// cross_entropy against plain loops in double: a problem, its calls and their comparison.
#pragma once
#include "kernels/cross_entropy/cross_entropy.h"

#include "kernels/tests/loss_reference.h"

namespace tigon::cross_entropy {

using namespace testing_support;

struct Problem {
  LossOptions options = {};
  int64_t rows = 3, columns = 40;
  int64_t padding = 0, offset = 0;  // elements after each row and before the first
  bool upstream = true;
  bool weighted = false, results = false;  // class weights; what is returned beside the loss
};

template <class P>
class CrossEntropy : public testing::Test {
 protected:
  using Elem = typename P::Elem;

  void make(const Problem& problem, float scale = 3.0f) {
    p_ = problem;
    stride_ = p_.columns + p_.padding;
    logits_ = random_values<Elem>(static_cast<size_t>(p_.rows * stride_), scale, 1);
    targets_ = random_targets(p_.rows, p_.columns, p_.options.ignore_index);
    upstream_ = random_values<float>(static_cast<size_t>(losses()), 1.0f, 2);
    weights_ = random_values<float>(static_cast<size_t>(p_.columns), 0.2f, 3);
    for (float& w : weights_) w += 1.5f;
  }
  int64_t losses() const { return p_.options.reduction == Reduction::kNone ? p_.rows : 1; }
  Elem& logit(int64_t row, int64_t column) {
    return logits_[static_cast<size_t>(row * stride_ + column)];
  }

  // Runs all passes and compares each with the reference.
  void expect_right() {
    SCOPED_TRACE(testing::Message() << "T " << p_.rows << " V " << p_.columns << " reduction "
                                    << static_cast<int>(p_.options.reduction) << " smoothing "
                                    << p_.options.label_smoothing << " z " << p_.options.z_loss
                                    << " softcap " << p_.options.softcap);
    const Outputs forward_only = run_forward(), both = run_forward_backward();
    const std::vector<Elem> gradient = run_backward(both.lse);
    if (testing::Test::HasFatalFailure()) return;
    const std::vector<RowReference> rows = reference();
    compare_losses(forward_only, rows);
    compare_losses(both, rows);
    compare_gradient(both.logits, rows);
    compare_gradient(gradient, rows);
  }

  struct Outputs {
    std::vector<float> loss, lse, z_part, accuracy, entropy;
    std::vector<Elem> logits;
  };

  // Memory of class weights and of what is returned beside the loss.
  struct Extras {
    DeviceArray<float> weights, z_part, accuracy, entropy;
  };
  Extras extras() const {
    const std::vector<float> poison(static_cast<size_t>(losses()), -1.0f);
    return {DeviceArray<float>(weights_), DeviceArray<float>(poison), DeviceArray<float>(poison),
            DeviceArray<float>(poison)};
  }
  template <class Args>
  void bind(Args& a, const Extras& e) const {
    if (p_.weighted) a.class_weight = view(static_cast<const float*>(e.weights.data()), p_.columns);
    if constexpr (requires { a.entropy; }) {
      if (!p_.results) return;
      a.z_part = view(e.z_part.data(), losses());
      a.accuracy = view(e.accuracy.data(), losses());
      a.entropy = view(e.entropy.data(), losses());
    }
  }

  template <class Args>
  void bind(Args& a, const DeviceArray<Elem>& logits, const DeviceArray<int64_t>& target) {
    static_cast<LossOptions&>(a) = p_.options;
    a.logits = {logits.data(), {p_.rows, p_.columns}, {stride_, 1}};
    a.target = view(static_cast<const int64_t*>(target.data()), p_.rows);
  }

  template <class Args, class Pass>
  Outputs run(Args a, Pass pass) {
    const DeviceArray<Elem> logits(logits_, p_.offset);
    const DeviceArray<int64_t> target(targets_);
    const DeviceArray<float> loss(std::vector<float>(static_cast<size_t>(losses()), -1.0f));
    const DeviceArray<float> lse(std::vector<float>(static_cast<size_t>(p_.rows), -1.0f));
    bind(a, logits, target);
    a.loss = view(loss.data(), losses());
    a.lse = view(lse.data(), p_.rows);
    const Extras e = extras();
    bind(a, e);
    launch(a, pass);
    return {loss.download(),       lse.download(),       e.z_part.download(),
            e.accuracy.download(), e.entropy.download(), logits.download()};
  }

  Outputs run_forward() { return run(Forward<P>{}, forward<P>); }

  Outputs run_forward_backward() {
    const DeviceArray<float> dloss(upstream_);
    ForwardBackward<P> a;
    if (p_.upstream) a.dloss = view(static_cast<const float*>(dloss.data()), losses());
    return run(a, forward_backward<P>);
  }

  std::vector<Elem> run_backward(const std::vector<float>& saved_lse) {
    const DeviceArray<Elem> logits(logits_, p_.offset);
    const DeviceArray<int64_t> target(targets_);
    const DeviceArray<float> dloss(upstream_), lse(saved_lse);
    Backward<P> a;
    bind(a, logits, target);
    if (p_.upstream) a.dloss = view(static_cast<const float*>(dloss.data()), losses());
    a.lse = view(static_cast<const float*>(lse.data()), p_.rows);
    const Extras e = extras();
    bind(a, e);
    launch(a, backward<P>);
    return logits.download();
  }

  std::vector<RowReference> reference() {
    std::vector<RowReference> rows;
    for (int64_t t = 0; t < p_.rows; ++t) {
      std::vector<double> x;
      for (int64_t v = 0; v < p_.columns; ++v) x.push_back(static_cast<double>(logit(t, v)));
      std::vector<double> weights;
      if (p_.weighted) weights.assign(weights_.begin(), weights_.end());
      const double z_share = share() > 0 ? row_share() / share() : 1;
      rows.push_back(
          row_reference(x, targets_[static_cast<size_t>(t)], p_.options, weights, z_share));
    }
    return rows;
  }

  // Of a row in the loss.
  double share() const {
    if (p_.options.reduction != Reduction::kMean || !p_.weighted) return row_share();
    double sum = 0;
    for (const int64_t y : targets_)
      if (y != p_.options.ignore_index && y >= 0 && y < p_.columns)
        sum += static_cast<double>(weights_[static_cast<size_t>(y)]);
    return sum > 0 ? 1 / sum : 0;
  }
  // Of a row in what has no class weight.
  double row_share() const {
    if (p_.options.reduction != Reduction::kMean) return 1;
    const auto counted =
        static_cast<double>(p_.rows) -
        static_cast<double>(std::count(targets_.begin(), targets_.end(), p_.options.ignore_index));
    return counted > 0 ? 1 / counted : 0;
  }

  void compare_losses(const Outputs& got, const std::vector<RowReference>& rows) {
    const auto n = static_cast<double>(p_.columns + p_.rows);
    double sum = 0, size = 0;
    for (size_t t = 0; t < rows.size(); ++t) {
      sum += share() * rows[t].loss;
      size += share() * rows[t].loss_size;
      EXPECT_TRUE(is_close<float>(got.lse[t], rows[t].lse, rows[t].lse_size, n))
          << "lse of row " << t << ": " << got.lse[t] << ", want " << rows[t].lse;
      if (p_.options.reduction == Reduction::kNone) {
        EXPECT_TRUE(is_close<float>(got.loss[t], rows[t].loss, rows[t].loss_size, n))
            << "loss of row " << t << ": " << got.loss[t] << ", want " << rows[t].loss;
      }
    }
    if (p_.options.reduction != Reduction::kNone) {
      EXPECT_TRUE(is_close<float>(got.loss[0], sum, size, n))
          << "loss " << got.loss[0] << ", want " << sum;
    }
    if (p_.results) compare_results(got, rows);
  }

  void compare_results(const Outputs& got, const std::vector<RowReference>& rows) {
    const bool none = p_.options.reduction == Reduction::kNone;
    const auto n = static_cast<double>(p_.columns + p_.rows);
    double z = 0, accuracy = 0, entropy = 0, z_size = 0, entropy_size = 0;
    for (size_t t = 0; t < rows.size(); ++t) {
      if (none) z = accuracy = entropy = z_size = entropy_size = 0;
      z += row_share() * rows[t].z_part;
      z_size +=
          row_share() * p_.options.z_loss * rows[t].lse_size * 4 * (1 + std::abs(rows[t].lse));
      accuracy += row_share() * rows[t].accuracy;
      entropy += row_share() * rows[t].entropy;
      entropy_size += row_share() * rows[t].entropy_size;
      if (!none && t + 1 < rows.size()) continue;
      const size_t i = none ? t : 0;
      EXPECT_TRUE(is_close<float>(got.z_part[i], z, z_size, n))
          << "z_part " << got.z_part[i] << ", want " << z;
      EXPECT_TRUE(is_close<float>(got.accuracy[i], accuracy, accuracy, n))
          << "accuracy " << got.accuracy[i] << ", want " << accuracy;
      EXPECT_TRUE(is_close<float>(got.entropy[i], entropy, entropy_size, n))
          << "entropy " << got.entropy[i] << ", want " << entropy;
    }
  }

  void compare_gradient(const std::vector<Elem>& got, const std::vector<RowReference>& rows) {
    const auto n = static_cast<double>(p_.columns);
    for (int64_t t = 0; t < p_.rows; ++t) {
      const RowReference& row = rows[static_cast<size_t>(t)];
      const bool none = p_.options.reduction == Reduction::kNone;
      const double g = share() * (p_.upstream ? upstream_[none ? static_cast<size_t>(t) : 0] : 1.0);
      for (int64_t v = 0; v < stride_; ++v) {
        const auto value = static_cast<double>(got[static_cast<size_t>(t * stride_ + v)]);
        if (v >= p_.columns) {
          ASSERT_EQ(value, static_cast<double>(logit(t, v))) << "padding written in row " << t;
          continue;
        }
        const auto i = static_cast<size_t>(v);
        ASSERT_TRUE(
            is_close<Elem>(value, g * row.gradient[i], std::abs(g) * row.gradient_size[i], n))
            << "gradient of row " << t << " column " << v << ": " << value << ", want "
            << g * row.gradient[i];
      }
    }
  }

  Problem p_;
  int64_t stride_ = 0;
  std::vector<Elem> logits_;
  std::vector<int64_t> targets_;
  std::vector<float> upstream_, weights_;
};

using Policies = testing::Types<F32, BF16, F16>;

}  // namespace tigon::cross_entropy
