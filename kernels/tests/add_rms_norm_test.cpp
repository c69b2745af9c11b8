// SPDX-License-Identifier: Apache-2.0
// add_rms_norm against a plain loop in double, in the memory of its inputs.
#include "kernels/add_rms_norm/add_rms_norm.h"

#include "kernels/tests/test_tensor.h"

namespace tigon::add_rms_norm {
namespace {

template <class P>
class AddRmsNorm : public testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(AddRmsNorm, Policies);

struct Case {
  int64_t t, h;
  int64_t pad = 0, shift = 0;
};
// Every shape of the tables of add_rms_norm.cu, rows beyond them, aligned and not, several rows per
// block.
constexpr Case kCases[] = {{3, 8},    {37, 64},  {21, 120},  {9, 256},   {6, 1000},    {3, 2048},
                           {2, 4096}, {2, 8192}, {1, 16384}, {1, 40000}, {5, 7},       {5, 301},
                           {3, 1023}, {2, 9001}, {3, 64, 8}, {3, 64, 3}, {3, 64, 0, 1}};
constexpr Case kBackwardCases[] = {{5, 8},     {6000, 8}, {37, 64},   {300, 120}, {13, 1000},
                                   {6, 4096},  {3, 8192}, {5, 16384}, {5, 20000}, {5, 7},
                                   {40, 1023}, {5, 9001}, {7, 64, 8}, {7, 64, 3}, {7, 64, 0, 1}};

testing::Message text_of(const Case& c) {
  return testing::Message() << "T=" << c.t << " H=" << c.h << " pad=" << c.pad
                            << " shift=" << c.shift;
}

// h takes residual's place, y that of x.
TYPED_TEST(AddRmsNorm, ForwardInPlace) {
  using T = typename TypeParam::Elem;
  for (const Case& c : kCases) {
    SCOPED_TRACE(text_of(c));
    const typename TestTensor<T>::Layout layout{c.pad, c.shift};
    TestTensor<T> x(c.t, c.h, layout), residual(c.t, c.h, layout, 3.0f);
    const TestTensor<T> w(1, c.h);
    TestTensor<float> rstd(1, c.t);
    Forward<TypeParam> args{x.const_view(), residual.const_view(),
                            w.const_row(),  residual.view(),
                            x.view(),       rstd.row()};
    args.eps = 1e-3f;
    args.offset = 0.5f;
    const Status status = forward(args, nullptr);
    ASSERT_TRUE(status.ok()) << status.reason;
    x.download();
    residual.download();
    rstd.download();
    ASSERT_TRUE(x.gaps_unchanged() && residual.gaps_unchanged());
    const double n = static_cast<double>(c.h);
    for (int64_t i = 0; i < c.t; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < c.h; ++j) {
        const double h = static_cast<double>(T(x.made(i, j) + residual.made(i, j)));
        ASSERT_EQ(residual.got(i, j), h) << i << ", " << j;
        sum += h * h;
      }
      const double r = 1 / std::sqrt(sum / n + args.eps);
      ASSERT_NEAR(rstd.got(0, i), r, budget<float>(r, r, n));
      for (int64_t j = 0; j < c.h; ++j) {
        const double y = residual.got(i, j) * r * (0.5 + w.made(0, j));
        ASSERT_NEAR(x.got(i, j), y, budget<T>(y, std::fabs(y), n, 8, 2)) << i << ", " << j;
      }
    }
  }
}

// dx takes dh's place, or dy's where there is no dh.
template <class P>
void expect_backward(const Case& c, bool with_dh) {
  using T = typename P::Elem;
  SCOPED_TRACE(text_of(c) << " dh=" << with_dh);
  const typename TestTensor<T>::Layout layout{c.pad, c.shift};
  const TestTensor<T> h(c.t, c.h, layout), w(1, c.h);
  TestTensor<T> dy(c.t, c.h, layout), dh(c.t, c.h, layout);
  TestTensor<T>& dx = with_dh ? dh : dy;
  TestTensor<float> rstd(1, c.t), dw(1, c.h);
  const double n = static_cast<double>(c.h);
  for (int64_t i = 0; i < c.t; ++i) rstd.set(0, i, 0.5 + static_cast<double>(i % 4));
  Backward<P> args{dy.const_view(),  dh.const_view(), h.const_view(), w.const_row(),
                   rstd.const_row(), dx.view(),       dw.row(),       {}};
  if (!with_dh) args.dh = {};
  const DeviceBuffer scratch(workspace(args));
  args.scratch = {scratch.data(), scratch.bytes()};
  device_mark_uninitialized(scratch.data(), scratch.bytes());
  const Status status = backward(args, nullptr);
  ASSERT_TRUE(status.ok()) << status.reason;
  dx.download();
  dw.download();
  ASSERT_TRUE(dx.gaps_unchanged());

  std::vector<double> sum(static_cast<size_t>(c.h)), size(static_cast<size_t>(c.h));
  for (int64_t i = 0; i < c.t; ++i) {
    const double r = rstd.made(0, i);
    const auto m = [&](int64_t j) { return dy.made(i, j) * w.made(0, j); };
    double dot = 0, dot_size = 0;
    for (int64_t j = 0; j < c.h; ++j) {
      const double term = m(j) * h.made(i, j) * r / n, dw_term = dy.made(i, j) * h.made(i, j) * r;
      dot += term;
      dot_size += std::fabs(term);
      sum[static_cast<size_t>(j)] += dw_term;
      size[static_cast<size_t>(j)] += std::fabs(dw_term);
    }
    for (int64_t j = 0; j < c.h; ++j) {
      const double h_hat = h.made(i, j) * r, stream = with_dh ? dh.made(i, j) : 0;
      const double expected = stream + r * (m(j) - h_hat * dot);
      const double scale = std::fabs(stream) + r * (std::fabs(m(j)) + std::fabs(h_hat) * dot_size);
      ASSERT_NEAR(dx.got(i, j), expected, budget<T>(expected, scale, n)) << i << ", " << j;
    }
  }
  for (int64_t j = 0; j < c.h; ++j) {
    const auto k = static_cast<size_t>(j);
    ASSERT_NEAR(dw.got(0, j), sum[k], budget<float>(sum[k], size[k], static_cast<double>(c.t)))
        << j;
  }
}

TYPED_TEST(AddRmsNorm, BackwardInPlace) {
  for (const Case& c : kBackwardCases) expect_backward<TypeParam>(c, true);
  for (const Case& c : {Case{5, 64}, Case{5, 7}, Case{5, 20000}})
    expect_backward<TypeParam>(c, false);
}

TEST(AddRmsNormArguments, AreChecked) {
  const TestTensor<float> x(2, 8), narrow(2, 4), row(1, 8), rstd(1, 2);
  Forward<F32> args{x.const_view(), narrow.const_view(), {}, x.view(), x.view(), rstd.row()};
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "residual too narrow";
  args.residual = {};
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no residual";
  args.residual = x.const_view();
  args.h.data = nullptr;
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no h";
  args.h = narrow.view();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "h too narrow";

  Backward<F32> back{x.const_view(),
                     narrow.const_view(),
                     x.const_view(),
                     row.const_row(),
                     rstd.const_row(),
                     x.view(),
                     {},
                     {}};
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "dh too narrow";
  back.dh = x.const_view();
  back.dw = row.row();
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "no scratch";
  back.w = {};
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "dw without w";
  back.dw = {};
  EXPECT_TRUE(backward(back, nullptr).ok());
}

TEST(AddRmsNormArguments, NoRowsGiveZeroGradient) {
  const TestTensor<float> w(1, 8);
  TestTensor<float> dw(1, 8);
  const View<const float, 2> none = view(static_cast<const float*>(nullptr), 0, 8);
  Backward<F32> args{none, none, none, w.const_row(), {}, {}, dw.row(), {}};
  args.dx = view(static_cast<float*>(nullptr), 0, 8);
  args.rstd = view(static_cast<const float*>(nullptr), 0);
  ASSERT_TRUE(backward(args, nullptr).ok());
  dw.download();
  for (int64_t j = 0; j < 8; ++j) EXPECT_EQ(dw.got(0, j), 0.0);
}

}  // namespace
}  // namespace tigon::add_rms_norm
