// SPDX-License-Identifier: Apache-2.0
// layer_norm: the same bits wherever rows lie, and what its launchers refuse.
#include "kernels/layer_norm/layer_norm.h"

#include <string>

#include "kernels/tests/device_array.h"
#include "kernels/tests/test_tensor.h"

namespace tigon::layer_norm {
namespace {

using namespace testing_support;

using Layout = TestTensor<float>::Layout;

template <class P>
class LayerNorm : public testing::Test {
 protected:
  using Elem = typename P::Elem;

  void make(int64_t rows, int64_t columns) {
    t_ = rows;
    h_ = columns;
    x_ = random_values<Elem>(size(t_ * h_), 1.0f, 1);
    dy_ = random_values<Elem>(size(t_ * h_), 1.0f, 2);
    w_ = random_values<Elem>(size(h_), 1.0f, 3);
  }

  // Bits of all results of both passes, with every [T, H] in this layout.
  std::vector<std::string> bits(const Layout& layout, bool in_place = false) {
    const int64_t stride = h_ + layout.pad;
    const auto spread = [&](const std::vector<Elem>& packed) {
      std::vector<Elem> values(size(t_ * stride), Elem(kUnset));
      for (int64_t i = 0; i < t_ * h_; ++i)
        values[size(i / h_ * stride + i % h_)] = packed[size(i)];
      return DeviceArray<Elem>(values, layout.shift);
    };
    const std::vector<Elem> nothing(x_.size(), Elem(kUnset));
    const auto x = spread(x_), dy = spread(dy_), y = spread(nothing), apart = spread(nothing);
    const DeviceArray<Elem> w(w_, layout.shift), &dx = in_place ? dy : apart;
    const DeviceArray<float> mean(unset(t_)), rstd(unset(t_)), dw(unset(h_)), db(unset(h_));
    const auto rows = [&](const DeviceArray<Elem>& a) {
      return View<Elem, 2>{a.data(), {t_, h_}, {stride, 1}};
    };
    const auto read = [&](const DeviceArray<Elem>& a) {
      return View<const Elem, 2>{a.data(), {t_, h_}, {stride, 1}};
    };
    const auto weight = view(static_cast<const Elem*>(w.data()), h_);

    Forward<P> f;
    f.x = read(x);
    f.w = f.b = weight;
    f.y = rows(y);
    f.mean = view(mean.data(), t_);
    f.rstd = view(rstd.data(), t_);
    EXPECT_TRUE(forward(f, nullptr).ok());
    Backward<P> b;
    b.dy = read(dy);
    b.x = f.x;
    b.w = weight;
    b.mean = view(static_cast<const float*>(mean.data()), t_);
    b.rstd = view(static_cast<const float*>(rstd.data()), t_);
    b.dx = rows(dx);
    b.dw = view(dw.data(), h_);
    b.db = view(db.data(), h_);
    launch(b, backward<P>);
    return {packed(y, stride),      packed(dx, stride),   bytes(mean.download()),
            bytes(rstd.download()), bytes(dw.download()), bytes(db.download())};
  }

 private:
  static constexpr float kUnset = -7.0f;
  static size_t size(int64_t n) { return static_cast<size_t>(n); }
  static std::vector<float> unset(int64_t n) { return std::vector<float>(size(n), kUnset); }

  template <class T>
  static std::string bytes(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }
  // Of the rows; what lies between them must be as it was.
  std::string packed(const DeviceArray<Elem>& array, int64_t stride) const {
    const std::vector<Elem> all = array.download();
    std::vector<Elem> values;
    for (int64_t i = 0; i < t_ * stride; ++i) {
      if (i % stride < h_) {
        values.push_back(all[size(i)]);
      } else {
        EXPECT_EQ(static_cast<float>(all[size(i)]), kUnset) << i;
      }
    }
    return bytes(values);
  }

  int64_t t_ = 0, h_ = 0;
  std::vector<Elem> x_, dy_, w_;
};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(LayerNorm, Policies);

// Rows that a warp, a block and no block holds, and fewer rows than a block takes at once.
TYPED_TEST(LayerNorm, HasTheSameBitsWhereverRowsLie) {
  constexpr int64_t kSizes[][2] = {{37, 64}, {5, 1160}, {3, 5128}, {2, 20000}};
  for (const auto& [rows, columns] : kSizes) {
    SCOPED_TRACE(testing::Message() << "T=" << rows << " H=" << columns);
    this->make(rows, columns);
    const auto aligned = this->bits({}), elements = this->bits({0, 1});
    EXPECT_EQ(this->bits({8, 0}), aligned);
    EXPECT_EQ(this->bits({24, 0}, true), aligned) << "dx in place of dy";
    EXPECT_EQ(this->bits({5, 3}), elements);
    EXPECT_EQ(this->bits({3, 0}, true), elements) << "dx in place of dy";
  }
}

TEST(LayerNormArguments, AreChecked) {
  const TestTensor<float> x(2, 8), narrow(2, 4), row(1, 8), of_rows(1, 2);
  Forward<F32> args;
  args.x = x.const_view();
  args.y = x.view();
  args.mean = of_rows.row();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no rstd";
  args.rstd = of_rows.row();
  args.b = narrow.const_row();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "b too short";
  args.b = {};
  args.y = narrow.view();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "y too narrow";
  args.x = view(static_cast<const float*>(nullptr), 0, 8);
  args.y = view(static_cast<float*>(nullptr), 0, 8);
  args.mean = args.rstd = view(static_cast<float*>(nullptr), 0);
  EXPECT_TRUE(forward(args, nullptr).ok()) << "no rows";

  Backward<F32> back;
  back.dy = narrow.const_view();
  back.x = x.const_view();
  back.mean = back.rstd = of_rows.const_row();
  back.dx = x.view();
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "dy too narrow";
  back.dy = x.const_view();
  EXPECT_TRUE(backward(back, nullptr).ok()) << "dx alone";
  back.dw = row.row();
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "dw without w";
  back.w = row.const_row();
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "no scratch";
  back.dw = {};
  back.mean.data = nullptr;
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "no mean";
}

TEST(LayerNormArguments, NoRowsGiveZeroGradients) {
  const TestTensor<float> w(1, 8);
  TestTensor<float> dw(1, 8), db(1, 8);
  Backward<F32> args;
  args.dy = args.x = view(static_cast<const float*>(nullptr), 0, 8);
  args.w = w.const_row();
  args.mean = args.rstd = view(static_cast<const float*>(nullptr), 0);
  args.dx = view(static_cast<float*>(nullptr), 0, 8);
  args.dw = dw.row();
  args.db = db.row();
  ASSERT_EQ(workspace(args), 0u);
  ASSERT_TRUE(backward(args, nullptr).ok());
  dw.download();
  db.download();
  for (int64_t j = 0; j < 8; ++j) EXPECT_EQ(std::abs(dw.got(0, j)) + std::abs(db.got(0, j)), 0.0);
}

}  // namespace
}  // namespace tigon::layer_norm
