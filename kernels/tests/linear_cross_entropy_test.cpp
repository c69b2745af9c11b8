// linear_cross_entropy against plain loops in double.
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <memory>
#include <optional>

#include "kernels/tests/loss_reference.h"

namespace tigon::linear_cross_entropy {
namespace {

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
    EXPECT_EQ(both.loss, alone.loss);
    EXPECT_EQ(both.lse, alone.lse);
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

  template <class Args, class Run>
  void launch(Args& a, Run run) {
    const DeviceBuffer scratch(workspace(a));
    a.scratch = {scratch.data(), scratch.bytes()};
    const Status status = run(a, nullptr);
    ASSERT_TRUE(status.ok()) << status.reason;
    device_synchronize();
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
TYPED_TEST_SUITE(LinearCrossEntropy, Policies);

TYPED_TEST(LinearCrossEntropy, OptionsInOneChunkAndInSeveral) {
  LossOptions plain, all{.label_smoothing = 0.1f, .z_loss = 1e-2f, .softcap = 5.0f};
  for (LossOptions o : {plain, all}) {
    for (const Reduction r : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
      o.reduction = r;
      for (const int64_t chunk : {100, 5, 1}) {
        this->make({.options = o, .rows_per_chunk = chunk});
        this->expect_right();
      }
    }
  }
}

// V not a multiple of the padding, H not a multiple of 16 bytes, whole tiles and a rest.
TYPED_TEST(LinearCrossEntropy, Sizes) {
  this->make({.rows = 300, .hidden = 9, .columns = 33, .rows_per_chunk = 130});
  this->expect_right();
  this->make({.rows = 5, .hidden = 3, .columns = 1, .rows_per_chunk = 2, .upstream = false});
  this->expect_right();
  this->make({.rows = 1, .hidden = 1, .columns = 8});
  this->expect_right();
}

TYPED_TEST(LinearCrossEntropy, GradientsLeftOut) {
  for (const int64_t chunk : {100, 5}) {
    for (const bool dx : {true, false}) {
      this->make({.rows_per_chunk = chunk, .dx = dx, .dw = dx ? Dw::kNone : Dw::kElem});
      this->expect_right();
    }
  }
  this->make({.dx = false, .dw = Dw::kNone});
  this->expect_right();
}

TYPED_TEST(LinearCrossEntropy, GradientInFp32) {
  for (const Dw dw : {Dw::kFp32, Dw::kAccum}) {
    for (const int64_t chunk : {100, 5}) {
      this->make({.rows_per_chunk = chunk, .dw = dw});
      this->expect_right();
    }
    this->make({.rows = 0, .dw = dw});
    this->expect_right();
  }
}

TYPED_TEST(LinearCrossEntropy, VocabularyInChunks) {
  LossOptions plain, all{.label_smoothing = 0.1f, .z_loss = 1e-2f, .softcap = 5.0f};
  for (LossOptions o : {plain, all}) {
    for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
      o.reduction = r;
      for (const int64_t columns : {100, 16, 1}) {
        this->make({.options = o, .columns_per_chunk = columns, .bias = true});
        this->expect_right();
      }
    }
  }
  // Whole tiles and a rest.
  this->make({.rows = 7, .hidden = 5, .columns = 700, .columns_per_chunk = 300});
  this->expect_right();
  for (const Dw dw : {Dw::kNone, Dw::kFp32, Dw::kAccum}) {
    this->make({.columns_per_chunk = 16, .dx = dw == Dw::kFp32, .dw = dw});
    this->expect_right();
    this->make({.rows = 0, .columns_per_chunk = 16, .dw = dw});
    this->expect_right();
  }
}

// Nine of thirteen rows are not ignored.
TYPED_TEST(LinearCrossEntropy, IgnoredRowsLeftOut) {
  for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
    for (const int64_t most : {9, 11, 100}) {
      for (const int64_t columns : {0, 16}) {
        this->make({.options = {.reduction = r},
                    .rows_per_chunk = 4,
                    .columns_per_chunk = columns,
                    .max_valid_rows = most,
                    .bias = true});
        this->expect_right();
      }
    }
  }
  this->make({.max_valid_rows = 0});
  this->targets_.assign(this->targets_.size(), -100);
  this->expect_right();
  this->make({.rows = 0, .max_valid_rows = 5});
  this->expect_right();
}

TYPED_TEST(LinearCrossEntropy, MoreRowsThanPromisedAreReported) {
  for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
    for (const int64_t most : {0, 8}) {
      this->make({.options = {.reduction = r}, .max_valid_rows = most, .bias = true});
      const auto out = this->run_forward_backward();
      for (const auto* values : {&out.loss, &out.lse, &out.dbias})
        for (const float v : *values) EXPECT_TRUE(std::isnan(v));
      for (const auto v : out.dx) EXPECT_TRUE(std::isnan(static_cast<float>(v)));
      for (const double v : out.dw) EXPECT_TRUE(std::isnan(v));
    }
  }
}

// The products shrink with the bound.
TYPED_TEST(LinearCrossEntropy, ScratchFollowsTheBoundOfRows) {
  using Elem = typename TypeParam::Elem;
  ForwardBackward<TypeParam> a;
  a.x = view(static_cast<const Elem*>(nullptr), 4096, 8);
  a.w = view(static_cast<const Elem*>(nullptr), 100000, 8);
  a.loss = view(static_cast<float*>(nullptr), 1);
  a.logits_bytes = int64_t{4} << 30;
  const auto all = workspace(a);
  a.max_valid_rows = 1024;
  EXPECT_LT(workspace(a), all / 2);
}

TYPED_TEST(LinearCrossEntropy, Bias) {
  for (const int64_t chunk : {100, 5}) {
    this->make({.rows_per_chunk = chunk, .bias = true});
    this->expect_right();
  }
  // Several groups of rows in the sums of dbias, and a last piece of a row.
  this->make({.rows = 200, .hidden = 3, .columns = 35, .rows_per_chunk = 200, .bias = true});
  this->expect_right();
  this->make({.rows = 0, .bias = true});
  this->expect_right();
}

TYPED_TEST(LinearCrossEntropy, MeanByTheCallersNormaliser) {
  for (const float n : {3.5f, 0.0f}) {
    this->make({.rows_per_chunk = 5, .normaliser = n});
    this->expect_right();
  }
}

TYPED_TEST(LinearCrossEntropy, NoRows) {
  for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
    this->make({.options = {.reduction = r}, .rows = 0});
    this->expect_right();  // dw is 0
  }
}

TYPED_TEST(LinearCrossEntropy, AllRowsIgnored) {
  this->make({.rows_per_chunk = 4});
  this->targets_.assign(this->targets_.size(), -100);
  this->expect_right();
  EXPECT_EQ(this->run_forward().loss[0], 0.0f);
}

// The budget buys rows; the GEMM's workspace is small beside these.
TYPED_TEST(LinearCrossEntropy, ScratchFollowsTheBudget) {
  using Elem = typename TypeParam::Elem;
  Elem some;  // nothing is read: only whether a gradient is given
  float some_fp32;
  ForwardBackward<TypeParam> a;
  a.x = view(static_cast<const Elem*>(nullptr), 4096, 64);
  a.w = view(static_cast<const Elem*>(nullptr), 500001, 64);
  a.loss = view(static_cast<float*>(nullptr), 1);
  a.reduction = Reduction::kSum;
  const int64_t row = 500008 * static_cast<int64_t>(sizeof(Elem));
  const auto bytes = [&](int64_t rows) {
    a.logits_bytes = rows * row + 1;
    return static_cast<int64_t>(workspace(a));
  };
  const int64_t one_row = bytes(0);
  EXPECT_EQ(one_row, bytes(1));
  // Six chunks of 683 rows: rounded up to whole tiles they would be over the budget of 700.
  EXPECT_LE(bytes(700) - one_row, 700 * row + (int64_t{64} << 20));
  EXPECT_GE(bytes(700) - one_row, 682 * row - (int64_t{64} << 20));
  EXPECT_LE(bytes(5000), 4096 * row + (int64_t{64} << 20));
  // A dw of fp32 needs no sum of its own.
  a.dw = view(&some, 500001, 64);
  const int64_t with_sum = bytes(700);
  a.dw = {};
  a.dw_accum = view(&some_fp32, 500001, 64);
  const int64_t sum = std::is_same_v<Elem, float> ? 0 : 500001 * 64 * 4;
  EXPECT_NEAR(with_sum - bytes(700), sum, 256);
  // Where the vocabulary is cut, 4096 rows of 1,024 columns and a sum of dx.
  a.dw_accum = {};
  a.dx = view(&some, 4096, 64);
  a.split = Split::kVocabulary;
  const int64_t column = 4096 * static_cast<int64_t>(sizeof(Elem));
  const auto of_columns = [&](int64_t columns) {
    a.logits_bytes = columns * column;
    return static_cast<int64_t>(workspace(a));
  };
  EXPECT_EQ(of_columns(1025), of_columns(1024));
  EXPECT_NEAR(of_columns(1024) - of_columns(8), 1016 * column, size_t{64} << 20);
}

TYPED_TEST(LinearCrossEntropy, RefusesBadArguments) {
  using Elem = typename TypeParam::Elem;
  this->make({});
  const DeviceArray<Elem> x(this->x_), w(this->w_), bias(this->bias_), dx(this->x_);
  const DeviceArray<int64_t> target(this->targets_);
  const DeviceArray<float> loss(std::vector<float>(13)), lse(std::vector<float>(13));
  ForwardBackward<TypeParam> good;
  this->bind(good, x, w, bias, target, loss, lse);
  good.dx = view(dx.data(), 13, 24);
  const DeviceArray<float> sum(std::vector<float>(50 * 24));
  const DeviceBuffer scratch(workspace(good));
  good.scratch = {scratch.data(), scratch.bytes()};
  ASSERT_TRUE(forward_backward(good, nullptr).ok());
  ASSERT_TRUE(tune(good).ok());
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    return forward_backward(bad, nullptr).code == Status::kInvalidArgument;
  };
  using A = ForwardBackward<TypeParam>;
  EXPECT_TRUE(refused([](A& a) { a.scratch.bytes -= 1; }));
  EXPECT_TRUE(refused([](A& a) { a.w.shape[1] = 23; }));
  EXPECT_TRUE(refused([](A& a) { a.dx.shape[0] = 12; }));
  EXPECT_TRUE(refused([](A& a) { a.x.stride[0] = 23; }));
  EXPECT_TRUE(refused([](A& a) { a.target.data = nullptr; }));
  EXPECT_TRUE(refused([](A& a) { a.loss.shape[0] = 13; }));
  EXPECT_TRUE(refused([](A& a) { a.label_smoothing = -0.1f; }));
  EXPECT_TRUE(refused([&](A& a) { a.dw_accum = view(sum.data(), 50, 23); }));
  EXPECT_TRUE(refused([&](A& a) { a.bias = view(static_cast<const Elem*>(w.data()), 49); }));
  EXPECT_TRUE(refused([&](A& a) { a.dbias = view(sum.data(), 51); }));
  EXPECT_TRUE(refused([&](A& a) { a.dw_accum = a.dw_fp32 = view(sum.data(), 50, 24); }));
}

}  // namespace
}  // namespace tigon::linear_cross_entropy
