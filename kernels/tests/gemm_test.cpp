// SPDX-License-Identifier: Apache-2.0
// GEMM seam against a double loop.
#include "kernels/device/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/device/gemm_parts.h"
#include "kernels/device/integer.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

// Values of T in device memory, with a copy in host memory.
template <class T>
struct Matrix {
  Matrix(int64_t rows, int64_t ld, unsigned seed) : host(static_cast<size_t>(rows * ld)), ld(ld) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    for (T& v : host) v = T(uniform(random));
    device = DeviceBuffer(host.size() * sizeof(T));
    device_upload(device.data(), host.data(), host.size() * sizeof(T));
  }
  double at(int64_t i, int64_t j) const {
    return static_cast<double>(host[static_cast<size_t>(i * ld + j)]);
  }
  std::vector<T> download() const {
    std::vector<T> v(host.size());
    device_synchronize();
    device_download(v.data(), device.data(), v.size() * sizeof(T));
    return v;
  }
  std::vector<T> host;
  int64_t ld;
  DeviceBuffer device;
};

struct Case {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1.0f, beta = 0.0f;
  int64_t padding = 0;  // of every row
  bool bias = false;
  int64_t check_every = 1;     // rows of C
  bool whole_vectors = false;  // every row is padded to them
  bool in_parts = false;       // by for_parts()
};

int64_t row_of(int64_t elements, const Case& c) {
  return (c.whole_vectors ? round_up(elements, 64) : elements) + c.padding;
}

// What no product may read.
template <class T>
void fill_gaps(Matrix<T>* m, int64_t columns) {
  for (size_t i = 0; i < m->host.size(); ++i)
    if (static_cast<int64_t>(i) % m->ld >= columns) m->host[i] = T(NAN);
  device_upload(m->device.data(), m->host.data(), m->device.bytes());
}

template <class In, class Out>
void expect_product(const Case& c) {
  SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << "x" << c.k << " ta " << c.transpose_a
                                  << " tb " << c.transpose_b << " " << name_of(dtype_of<In>));
  const int64_t of_a = c.transpose_a ? c.m : c.k, of_b = c.transpose_b ? c.k : c.n;
  Matrix<In> a(c.transpose_a ? c.k : c.m, row_of(of_a, c), 1);
  Matrix<In> b(c.transpose_b ? c.n : c.k, row_of(of_b, c), 2);
  const Matrix<Out> out(c.m, row_of(c.n, c), 3);
  fill_gaps(&a, of_a);
  fill_gaps(&b, of_b);
  const Matrix<Out> bias(1, c.n, 4);
  const Gemm problem{.m = c.m,
                     .n = c.n,
                     .k = c.k,
                     .in_type = dtype_of<In>,
                     .out_type = dtype_of<Out>,
                     .a = a.device.data(),
                     .b = b.device.data(),
                     .c = out.device.data(),
                     .bias = c.bias ? bias.device.data() : nullptr,
                     .lda = a.ld,
                     .ldb = b.ld,
                     .ldc = out.ld,
                     .transpose_a = c.transpose_a,
                     .transpose_b = c.transpose_b,
                     .alpha = c.alpha,
                     .beta = c.beta};
  const DeviceBuffer scratch(gemm_workspace(problem));
  const auto multiply = [&](const Gemm& g) {
    return gemm(g, {scratch.data(), scratch.bytes()}, nullptr);
  };
  const Status status = c.in_parts ? for_parts(problem, multiply) : multiply(problem);
  ASSERT_TRUE(status.ok()) << status.reason;
  const std::vector<Out> result = out.download();
  for (int64_t i = 0; i < c.m; i += c.check_every) {
    for (int64_t j = 0; j < out.ld; ++j) {
      const auto index = static_cast<size_t>(i * out.ld + j);
      const auto got = static_cast<double>(result[index]);
      if (j >= c.n) {
        ASSERT_EQ(got, out.at(i, j)) << "padding written at " << i << ", " << j;
        continue;
      }
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        const double term =
            (c.transpose_a ? a.at(k, i) : a.at(i, k)) * (c.transpose_b ? b.at(j, k) : b.at(k, j));
        sum += term;
        magnitude += std::abs(term);
      }
      const double start = c.beta == 0 ? 0 : c.beta * out.at(i, j);
      const double product = c.alpha * sum + start, added = c.bias ? bias.at(0, j) : 0;
      const double want = product + added;
      // The product may be rounded before the bias is added to it.
      const double rounded = std::abs(want) + (c.bias ? std::abs(product) : 0);
      const double bound = unit_roundoff(dtype_of<Out>) * rounded +
                           (4 * std::sqrt(static_cast<double>(c.k)) + 4) * 0x1p-24 *
                               (std::abs(c.alpha) * magnitude + std::abs(start + added) + 1);
      ASSERT_TRUE(std::abs(got - want) <= bound)
          << "at " << i << ", " << j << ": " << got << ", want " << want << " +- " << bound;
    }
  }
}

void expect_product_in_all_types(const Case& c) {
  expect_product<float, float>(c);
  expect_product<bf16, bf16>(c);
  expect_product<bf16, float>(c);
  expect_product<f16, f16>(c);
  expect_product<f16, float>(c);
}

TEST(Gemm, AllTransposes) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      expect_product_in_all_types(
          {.m = 33, .n = 50, .k = 21, .transpose_a = ta, .transpose_b = tb});
}

TEST(Gemm, AlphaBetaAndLeadingDimensions) {
  expect_product_in_all_types(
      {.m = 17, .n = 9, .k = 40, .alpha = 0.5f, .beta = 1.0f, .padding = 7});
  expect_product_in_all_types(
      {.m = 8, .n = 24, .k = 16, .transpose_a = true, .alpha = -2.0f, .beta = 0.25f, .padding = 8});
}

TEST(Gemm, BiasOfEachColumn) {
  expect_product_in_all_types({.m = 33, .n = 50, .k = 21, .transpose_b = true, .bias = true});
  expect_product<bf16, bf16>({.m = 256, .n = 512, .k = 64, .transpose_b = true, .bias = true});
  expect_product<float, float>(
      {.m = 5, .n = 800, .k = 7, .beta = 1.0f, .padding = 4, .bias = true});
}

TEST(Gemm, MoreThanOneTile) {
  expect_product<bf16, float>({.m = 400, .n = 390, .k = 800, .transpose_b = true, .beta = 1.0f});
  expect_product<float, float>({.m = 1, .n = 1000, .k = 3, .transpose_a = true});
  expect_product<float, float>({.m = 1, .n = 1, .k = 1});
}

// Rows that begin with a vector and end within one. Sums go into C where it is f32, as ops have it.
TEST(Gemm, DrawnSizesInRowsOfWholeVectors) {
  std::mt19937 random(29);
  const auto size = [&] { return static_cast<int64_t>(random() % 300 + 1); };
  for (int i = 0; i < 24; ++i) {
    Case c{.m = size(),
           .n = size(),
           .k = size(),
           .transpose_a = random() % 2 == 0,
           .transpose_b = random() % 2 == 0,
           .bias = random() % 2 == 0,
           .whole_vectors = true};
    expect_product_in_all_types(c);
    c.beta = 1.0f;
    expect_product<float, float>(c);
    expect_product<bf16, float>(c);
    expect_product<f16, float>(c);
  }
}

// Large enough for two products; a product cuts itself on a GPU only.
TEST(Gemm, TheLastColumnsApart) {
  for (const bool transpose_b : {false, true})
    for (const bool in_parts : {false, true})
      expect_product<bf16, bf16>({.m = 519,
                                  .n = 2053,
                                  .k = 1031,
                                  .transpose_b = transpose_b,
                                  .bias = transpose_b,
                                  .check_every = 37,
                                  .whole_vectors = true,
                                  .in_parts = in_parts});
}

TEST(Gemm, CutsWhereTheLastVectorEnds) {
  Gemm g{.m = 519, .n = 2053, .k = 1031, .in_type = DType::kBF16, .out_type = DType::kBF16};
  g.lda = g.ldb = 2048;
  g.ldc = 2056;
  EXPECT_EQ(first_columns(g), 2048);
  const auto whole = [&](auto change) {
    Gemm other = g;
    change(other);
    return first_columns(other) == other.n;
  };
  EXPECT_TRUE(whole([](Gemm& o) { o.n = 2048; }));
  EXPECT_TRUE(whole([](Gemm& o) { o.m = 1; })) << "too small to gain";
  EXPECT_TRUE(whole([](Gemm& o) { o.ldb = 2053; })) << "no fast kernel for these rows";
  EXPECT_TRUE(whole([](Gemm& o) { o.in_type = DType::kF32; }));
  EXPECT_TRUE(whole([](Gemm& o) { o.n = 7, o.m = o.k = 1 << 20; })) << "less than a vector";
}

// Without beta, C may hold anything.
TEST(Gemm, BetaZeroDoesNotReadC) {
  Matrix<float> a(4, 4, 1), b(4, 4, 2), c(4, 4, 3);
  device_fill(c.device.data(), 0xff, c.device.bytes());  // NaN
  const Gemm problem{.m = 4,
                     .n = 4,
                     .k = 4,
                     .a = a.device.data(),
                     .b = b.device.data(),
                     .c = c.device.data(),
                     .lda = 4,
                     .ldb = 4,
                     .ldc = 4};
  const DeviceBuffer scratch(gemm_workspace(problem));
  ASSERT_TRUE(gemm(problem, {scratch.data(), scratch.bytes()}, nullptr).ok());
  for (const float v : c.download()) EXPECT_TRUE(std::isfinite(v));
}

TEST(Gemm, RefusesBadProblems) {
  Matrix<float> a(4, 4, 1);
  const DeviceBuffer scratch(size_t{64} << 20);
  const Scratch enough{scratch.data(), scratch.bytes()};
  const Gemm good{.m = 4,
                  .n = 4,
                  .k = 4,
                  .a = a.device.data(),
                  .b = a.device.data(),
                  .c = a.device.data(),
                  .lda = 4,
                  .ldb = 4,
                  .ldc = 4};
  const auto refused = [&](auto change) {
    Gemm bad = good;
    change(bad);
    return gemm(bad, enough, nullptr).code == Status::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](Gemm& g) { g.in_type = DType::kF64; }));
  EXPECT_TRUE(refused([](Gemm& g) { g.out_type = DType::kBF16; }));
  EXPECT_TRUE(refused([](Gemm& g) { g.m = -1; }));
  EXPECT_TRUE(refused([](Gemm& g) { g.lda = 3; }));
  EXPECT_TRUE(refused([](Gemm& g) { g.b = nullptr; }));
  EXPECT_EQ(gemm(good, {scratch.data(), 1}, nullptr).code, Status::kInvalidArgument);
}

TEST(Gemm, TuningKeepsTheResult) {
  const Gemm problem{
      .m = 33, .n = 50, .k = 21, .in_type = DType::kBF16, .lda = 21, .ldb = 50, .ldc = 50};
  const Status status = gemm_tune(problem);
  ASSERT_TRUE(status.ok()) << status.reason;
  ASSERT_TRUE(gemm_tune(problem).ok());
  expect_product<bf16, float>({.m = 33, .n = 50, .k = 21});
}

}  // namespace
}  // namespace tigon
