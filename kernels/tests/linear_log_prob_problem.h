// SPDX-License-Identifier: Apache-2.0
// linear_log_prob against plain loops in double: a problem, its calls and their comparison.
#pragma once
#include "kernels/linear_log_prob/linear_log_prob.h"

#include "kernels/tests/loss_reference.h"

namespace tigon::linear_log_prob {

using namespace testing_support;

enum class Dw { kNone, kElem, kFp32, kAccum };

struct Problem {
  float temperature = 1.0f;
  int64_t rows = 13, hidden = 24, columns = 50;
  int64_t rows_per_chunk = 100;
  int64_t columns_per_chunk = 0;  // of rows, where 0
  int64_t max_valid_rows = -1;
  bool entropy = true, bias = false, dx = true;
  Dw dw = Dw::kElem;
};

template <class P>
class LinearLogProb : public testing::Test {
 protected:
  using Elem = typename P::Elem;
  using Floats = DeviceArray<float>;

  struct Outputs {
    std::vector<float> logp, lse, entropy;
    std::vector<Elem> dx;
    std::vector<double> dw;
    std::vector<float> dbias;
  };

  static size_t size(int64_t n) { return static_cast<size_t>(n); }

  void make(const Problem& problem) {
    p_ = problem;
    const float scale = 0.5f * std::min(1.0f, p_.temperature);
    x_ = random_values<Elem>(size(p_.rows * p_.hidden), 1.0f, 1);
    w_ = random_values<Elem>(size(p_.columns * p_.hidden), scale, 2);
    bias_.assign(size(p_.columns), Elem(0.0f));
    if (p_.bias) bias_ = random_values<Elem>(bias_.size(), 2 * scale, 5);
    targets_ = random_targets(p_.rows, p_.columns, -100);
    dlogp_ = random_values<float>(size(p_.rows), 1.0f, 3);
    dentropy_ = random_values<float>(size(p_.rows), 1.0f, 6);
    held_ = random_values<float>(w_.size(), 1.0f, 4);
  }

  template <class Args>
  void bind(Args& a, const DeviceArray<Elem>& x, const DeviceArray<Elem>& w,
            const DeviceArray<Elem>& bias, const DeviceArray<int64_t>& target) const {
    a.temperature = p_.temperature;
    a.max_valid_rows = p_.max_valid_rows;
    const auto bytes = static_cast<int64_t>(sizeof(Elem));
    a.logits_bytes = p_.rows_per_chunk * ((p_.columns + 7) / 8 * 8) * bytes;
    if (p_.columns_per_chunk > 0) {
      a.split = Split::kVocabulary;
      a.logits_bytes = p_.columns_per_chunk * std::max<int64_t>(1, p_.rows) * bytes;
    }
    a.x = view(static_cast<const Elem*>(x.data()), p_.rows, p_.hidden);
    a.w = view(static_cast<const Elem*>(w.data()), p_.columns, p_.hidden);
    if (p_.bias) a.bias = view(static_cast<const Elem*>(bias.data()), p_.columns);
    a.target = view(static_cast<const int64_t*>(target.data()), p_.rows);
  }

  // Forward, and backward on what it saved.
  Outputs run() {
    const DeviceArray<Elem> x(x_), w(w_), bias(bias_), dx(x_), dw(w_);
    const DeviceArray<int64_t> target(targets_);
    const std::vector<float> unset(size(p_.rows), -7.0f);
    const Floats logp(unset), lse(unset), entropy(unset), dlogp(dlogp_), dentropy(dentropy_);
    const Floats dw_fp32(held_), dbias(std::vector<float>(bias_.size(), -7.0f));
    const auto row = [&](const Floats& array) { return view(array.data(), p_.rows); };
    const auto given = [&](const Floats& array) {
      return view(static_cast<const float*>(array.data()), p_.rows);
    };
    Forward<P> f;
    bind(f, x, w, bias, target);
    f.logp = row(logp);
    f.lse = row(lse);
    if (p_.entropy) f.entropy = row(entropy);
    launch(f, forward<P>);

    Backward<P> b;
    bind(b, x, w, bias, target);
    b.lse = given(lse);
    b.dlogp = given(dlogp);
    if (p_.entropy) {
      b.dentropy = given(dentropy);
      b.entropy = given(entropy);
    }
    if (p_.dx) b.dx = view(dx.data(), p_.rows, p_.hidden);
    if (p_.dw == Dw::kElem) b.dw = view(dw.data(), p_.columns, p_.hidden);
    if (p_.dw == Dw::kFp32) b.dw_fp32 = view(dw_fp32.data(), p_.columns, p_.hidden);
    if (p_.dw == Dw::kAccum) b.dw_accum = view(dw_fp32.data(), p_.columns, p_.hidden);
    if (p_.bias) b.dbias = view(dbias.data(), p_.columns);
    launch(b, backward<P>);

    Outputs out{logp.download(), lse.download(), entropy.download(), dx.download(), {},
                dbias.download()};
    if (p_.dw == Dw::kElem)
      for (const Elem v : dw.download()) out.dw.push_back(static_cast<double>(v));
    else
      for (const float v : dw_fp32.download()) out.dw.push_back(static_cast<double>(v));
    return out;
  }

  // A row's exact results. `shift` bounds how far a stored logit over the temperature is off.
  struct RowReference {
    std::vector<double> log_p;
    double lse = 0, entropy = 0, spread = 0, shift = 0;
  };
  RowReference reference(int64_t t) const {
    RowReference r;
    r.log_p.resize(size(p_.columns));
    double largest = 0, max = -kInfinity, sum = 0;
    for (int64_t v = 0; v < p_.columns; ++v) {
      double z = static_cast<double>(bias_[size(v)]);
      for (int64_t h = 0; h < p_.hidden; ++h) z += at(x_, t, h) * at(w_, v, h);
      r.log_p[size(v)] = static_cast<double>(Elem(z)) / static_cast<double>(p_.temperature);
      if (std::isfinite(z)) largest = std::max(largest, std::abs(z));
      max = std::max(max, r.log_p[size(v)]);
    }
    for (const double z : r.log_p) sum += std::exp(z - max);
    r.lse = max + std::log(sum);
    for (double& z : r.log_p) {
      z -= r.lse;
      if (z == -kInfinity) continue;
      r.entropy -= std::exp(z) * z;
    }
    r.shift = 4 * (unit_roundoff(dtype_of<Elem>) + 1e-5) * (largest + p_.temperature) /
              static_cast<double>(p_.temperature);
    return r;
  }

  void expect_right() {
    SCOPED_TRACE(testing::Message()
                 << "T " << p_.rows << " H " << p_.hidden << " V " << p_.columns << " temperature "
                 << p_.temperature << " rows " << p_.rows_per_chunk << " columns "
                 << p_.columns_per_chunk << " dw " << static_cast<int>(p_.dw));
    const Outputs got = run();
    if (testing::Test::HasFatalFailure()) return;
    compare(got);
  }

  void compare(const Outputs& got) {
    const double u = unit_roundoff(dtype_of<Elem>);
    std::vector<double> dw(w_.size()), dw_error(w_.size());
    std::vector<double> dbias(bias_.size()), dbias_error(bias_.size());
    for (int64_t t = 0; t < p_.rows; ++t) {
      const int64_t y = targets_[size(t)];
      std::vector<double> dx(size(p_.hidden)), dx_error(size(p_.hidden));
      if (y == -100) {
        EXPECT_EQ(got.logp[size(t)], 0.0f);
        EXPECT_EQ(got.lse[size(t)], 0.0f);
        EXPECT_EQ(got.entropy[size(t)], p_.entropy ? 0.0f : -7.0f);
      } else {
        const RowReference r = reference(t);
        expect_near(got.logp[size(t)], r.log_p[size(y)], 2 * r.shift, "logp", t);
        expect_near(got.lse[size(t)], r.lse, r.shift, "lse", t);
        const double entropy_error = 4 * r.shift * (r.entropy + 1);
        if (p_.entropy) expect_near(got.entropy[size(t)], r.entropy, entropy_error, "entropy", t);
        const double g = dlogp_[size(t)], h = p_.entropy ? dentropy_[size(t)] : 0;
        for (int64_t v = 0; v < p_.columns; ++v) {
          const double log_p = r.log_p[size(v)], p = std::exp(log_p);
          const double of_entropy = p == 0 ? 0 : h * (log_p + r.entropy);
          const double tau = p_.temperature;
          const double d = ((v == y ? g : 0) - p * (g + of_entropy)) / tau;
          const double moved =
              p * (4 * r.shift * (std::abs(g) + std::abs(of_entropy) + std::abs(h)) +
                   std::abs(h) * entropy_error);
          const double error = moved / tau + 2 * u * std::abs(d) + 4e-6 * std::abs(g) / tau;
          add_products(t, v, d, error, &dx, &dx_error, &dw, &dw_error);
          dbias[size(v)] += d;
          dbias_error[size(v)] += error;
        }
      }
      for (int64_t h = 0; h < p_.hidden && p_.dx; ++h)
        ASSERT_TRUE(std::abs(at(got.dx, t, h) - dx[size(h)]) <=
                    dx_error[size(h)] + u * std::abs(dx[size(h)]))
            << "dx at " << t << ", " << h << ": " << at(got.dx, t, h) << ", want " << dx[size(h)];
    }
    for (size_t i = 0; i < dw.size() && p_.dw != Dw::kNone; ++i) {
      const double held = p_.dw == Dw::kAccum ? static_cast<double>(held_[i]) : 0;
      const double rounding =
          (p_.dw == Dw::kElem ? u : 0x1p-22) * (std::abs(dw[i]) + std::abs(held));
      ASSERT_TRUE(std::abs(got.dw[i] - held - dw[i]) <= dw_error[i] + rounding)
          << "dw at " << i << ": " << got.dw[i] << ", want " << held + dw[i];
    }
    for (size_t i = 0; i < dbias.size() && p_.bias; ++i)
      ASSERT_TRUE(std::abs(static_cast<double>(got.dbias[i]) - dbias[i]) <= dbias_error[i])
          << "dbias at " << i << ": " << got.dbias[i] << ", want " << dbias[i];
    EXPECT_TRUE(p_.dx || got.dx == x_) << "dx was left out and is written";
  }

  void add_products(int64_t t, int64_t v, double d, double error, std::vector<double>* dx,
                    std::vector<double>* dx_error, std::vector<double>* dw,
                    std::vector<double>* dw_error) const {
    for (int64_t h = 0; h < p_.hidden; ++h) {
      const size_t i = size(v * p_.hidden + h);
      (*dx)[size(h)] += d * at(w_, v, h);
      (*dx_error)[size(h)] += error * std::abs(at(w_, v, h));
      (*dw)[i] += d * at(x_, t, h);
      (*dw_error)[i] += error * std::abs(at(x_, t, h));
    }
  }
  static void expect_near(float got, double want, double error, const char* what, int64_t t) {
    if (std::isinf(want))
      EXPECT_EQ(static_cast<double>(got), want) << what << " of row " << t;
    else
      EXPECT_TRUE(std::abs(static_cast<double>(got) - want) <= error)
          << what << " of row " << t << ": " << got << ", want " << want;
  }
  double at(const std::vector<Elem>& m, int64_t i, int64_t j) const {
    return static_cast<double>(m[size(i * p_.hidden + j)]);
  }

  Problem p_;
  std::vector<Elem> x_, w_, bias_;
  std::vector<int64_t> targets_;
  std::vector<float> dlogp_, dentropy_, held_;
};

using Policies = testing::Types<F32, BF16, F16>;

}  // namespace tigon::linear_log_prob
