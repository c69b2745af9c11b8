// SPDX-License-Identifier: Apache-2.0
// rms_norm: the bits of y, what its launchers refuse, and its blocks.
#include "kernels/rms_norm/rms_norm.h"

#include <algorithm>

#include "kernels/norm/rows_ahead.h"
#include "kernels/tests/test_tensor.h"

namespace tigon::rms_norm {
namespace {

template <class P>
class RmsNorm : public testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(RmsNorm, Policies);

struct Case {
  int64_t t, h;
  int64_t pad = 0, shift = 0;
};
// Every shape of the tables of rms_norm.cu, rows beyond them, aligned and not, several rows per
// block.
constexpr Case kCases[] = {{1, 1},    {3, 8},    {37, 64},   {21, 120},  {9, 256},
                           {6, 1000}, {3, 4096}, {2, 8192},  {1, 16384}, {1, 40000},
                           {3, 1160}, {3, 1600}, {2, 7176},  {5, 7},     {5, 301},
                           {3, 1023}, {2, 9001}, {3, 64, 8}, {3, 64, 3}, {3, 64, 0, 1}};
double rstd_of(const auto& x, int64_t row, int64_t h, double eps) {
  double sum = 0;
  for (int64_t j = 0; j < h; ++j) sum += x.made(row, j) * x.made(row, j);
  return 1 / std::sqrt(sum / static_cast<double>(h) + eps);
}

// y to the bit: the budgets of the contract leave open where it is rounded.
template <class T>
double cast_as(Casting casting, double x, float rstd, double gain) {
  const auto stored = [](double v) { return static_cast<float>(T(static_cast<float>(v))); };
  const float r = casting == Casting::kNone ? stored(rstd) : rstd;
  const float x_hat = static_cast<float>(x) * r;
  const float g = casting == Casting::kNone ? stored(gain) : static_cast<float>(gain);
  return stored((casting == Casting::kGemma ? x_hat : stored(x_hat)) * g);
}

TYPED_TEST(RmsNorm, Forward) {
  using T = typename TypeParam::Elem;
  for (const Case& c : kCases)
    for (const Casting casting : {Casting::kLlama, Casting::kGemma, Casting::kNone})
      for (const bool weighted : {true, false}) {
        SCOPED_TRACE(testing::Message() << "T=" << c.t << " H=" << c.h << " pad=" << c.pad
                                        << " shift=" << c.shift << " weighted=" << weighted);
        const typename TestTensor<T>::Layout layout{c.pad, c.shift};
        const TestTensor<T> x(c.t, c.h, layout), w(1, c.h);
        TestTensor<T> y(c.t, c.h, layout);
        TestTensor<float> rstd(1, c.t);
        Forward<TypeParam> args{x.const_view(), w.const_row(), y.view(), rstd.row()};
        args.eps = 1e-3f;
        args.offset = 0.5f;
        args.casting = casting;
        if (!weighted) args.w = {};
        const Status status = forward(args, nullptr);
        ASSERT_TRUE(status.ok()) << status.reason;
        y.download();
        rstd.download();
        ASSERT_TRUE(y.gaps_unchanged());
        const double n = static_cast<double>(c.h);
        for (int64_t i = 0; i < c.t; ++i) {
          const double r = rstd_of(x, i, c.h, args.eps);
          ASSERT_NEAR(rstd.got(0, i), r, budget<float>(r, r, n));
          const auto saved = static_cast<float>(rstd.got(0, i));
          for (int64_t j = 0; j < c.h; ++j)
            ASSERT_EQ(y.got(i, j),
                      cast_as<T>(casting, x.made(i, j), saved, weighted ? 0.5 + w.made(0, j) : 1))
                << i << ", " << j;
        }
      }
}

TEST(RmsNormArguments, AreChecked) {
  const TestTensor<float> x(2, 8), narrow(2, 4), row(1, 8), rstd(1, 2);
  Forward<F32> args{x.const_view(), row.const_row(), x.view(), rstd.row()};
  args.w = narrow.const_row();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "w too short";
  args.w = {};
  args.rstd.data = nullptr;
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no rstd";
  args.x = view(static_cast<const float*>(nullptr), 0, 8);
  args.y = view(static_cast<float*>(nullptr), 0, 8);
  args.rstd = view(static_cast<float*>(nullptr), 0);
  EXPECT_TRUE(forward(args, nullptr).ok()) << "no rows";

  Backward<F32> back{x.const_view(), x.const_view(), {}, rstd.const_row(), x.view(), row.row(), {}};
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "dw without w";
  back.w = row.const_row();
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "no scratch";
}

TEST(RmsNormArguments, NoRowsGiveZeroGradient) {
  const TestTensor<float> w(1, 8);
  TestTensor<float> dw(1, 8);
  const View<const float, 2> none = view(static_cast<const float*>(nullptr), 0, 8);
  const Backward<F32> args{none,
                           none,
                           w.const_row(),
                           view(static_cast<const float*>(nullptr), 0),
                           view(static_cast<float*>(nullptr), 0, 8),
                           dw.row(),
                           {}};
  ASSERT_EQ(workspace(args), 0u);
  ASSERT_TRUE(backward(args, nullptr).ok());
  dw.download();
  for (int64_t j = 0; j < 8; ++j) EXPECT_EQ(dw.got(0, j), 0.0);
}

TEST(RowBlock, AsFewWarpsAsHoldTheRowAndAsManyBlocksAsHaveRegisters) {
  const auto expect = [](const LaunchShape& shape, int64_t pieces, const RowBlock& expected) {
    const RowBlock block = row_block(shape, pieces);
    EXPECT_EQ(block.threads, expected.threads) << shape.lanes << " lanes, " << pieces << " pieces";
    EXPECT_EQ(block.rows, expected.rows) << shape.lanes << " lanes, " << pieces << " pieces";
    EXPECT_EQ(block.per_sm, expected.per_sm) << shape.lanes << " lanes, " << pieces << " pieces";
  };
  constexpr LaunchShape kFitted = {320, 2, 2}, kOne = {480, 2, 1};
  expect(kFitted, 640, {320, 1, 2});
  expect(kFitted, 577, {320, 1, 2});
  expect(kFitted, 576, {288, 1, 2});
  expect(kFitted, 360, {192, 1, 3});
  expect(kOne, 1, {64, 1, 7});
  expect(kOne, 1 << 20, {480, 1, 1});  // longer than it holds
  expect({96, 2, 16}, 1, {64, 1, 16});
  // Powers of two are what they are.
  expect({32, 4, 8}, 100, {128, 4, 8});
  expect({64, 4, 8}, 100, {128, 2, 8});
  expect({512, 2, 1}, 100, {512, 1, 1});
}

TEST(RowsAhead, HalfAWaveAndNothingWithinOne) {
  constexpr LaunchShape kBlocks = {256, 4, 4}, kWarps = {32, 4, 8}, kOneVector = {32, 1, 8};
  const auto ahead = [](const LaunchShape& shape, int64_t rows, int64_t multiprocessors) {
    return norm::rows_ahead(shape, row_block(shape, 1), rows, multiprocessors);
  };
  EXPECT_EQ(ahead(kBlocks, 528, 132), 0);
  EXPECT_EQ(ahead(kBlocks, 529, 132), 264);
  EXPECT_EQ(ahead(kBlocks, 529, 60), 120);
  EXPECT_EQ(ahead(kWarps, 4224, 132), 0) << "four rows a block";
  EXPECT_EQ(ahead(kWarps, 4225, 132), 2112);
  EXPECT_EQ(ahead(kOneVector, 1 << 20, 132), 0);
}

}  // namespace
}  // namespace tigon::rms_norm
