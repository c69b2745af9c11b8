// SPDX-License-Identifier: Apache-2.0
// Device layer: the same kernels and checks on the host executor and on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/device/tests/device_array.h"
#include "kernels/device/tests/primitives.h"

namespace tigon::device_tests {
namespace {

#define ASSERT_STATUS(expression)              \
  do {                                         \
    const Status status = (expression);        \
    ASSERT_TRUE(status.ok()) << status.reason; \
  } while (false)

std::vector<int> small_integers(size_t n) {
  std::mt19937 random(1);
  std::vector<int> v(n);
  for (int& x : v) x = static_cast<int>(random() % 100);
  return v;
}

std::vector<float> normal(size_t n, float sigma = 1.0f) {
  std::mt19937 random(2);
  std::normal_distribution<float> d(0.0f, sigma);
  std::vector<float> v(n);
  for (float& x : v) x = d(random);
  return v;
}

TEST(Device, WarpOperations) {
  constexpr int n = 150;  // the last warp is partly out of range
  const std::vector<int> values = small_integers(n);
  DeviceArray<int> in(values), out(n * kWarpOps);
  ASSERT_STATUS(warp_ops(in.data(), out.data(), n));
  const std::vector<int> got = out.get();
  const auto v = [&](int i) { return i < n ? values[static_cast<size_t>(i)] : 0; };
  for (int i = 0; i < n; ++i) {
    const int warp = i / 32 * 32, lane = i % 32;
    unsigned odd = 0, same = 0;
    int any = 0, sum = 0, most = 0, sum8 = 0;
    for (int k = 0; k < 32; ++k) {
      odd |= static_cast<unsigned>(v(warp + k) & 1) << k;
      same |= static_cast<unsigned>(v(warp + k) == v(i)) << k;
      any |= v(warp + k) > 90;
      sum += v(warp + k);
      most = std::max(most, v(warp + k));
      if (k / 8 == lane / 8) sum8 += v(warp + k);
    }
    const int want[kWarpOps] = {v(lane > 0 ? i - 1 : i),
                                v(lane < 30 ? i + 2 : i),
                                v(warp + lane / 8 * 8 + 5),
                                v(warp + (lane ^ 3)),
                                lane < 16 ? v(warp + (lane ^ 8)) : v(lane < 31 ? i + 1 : i),
                                any,
                                1,
                                static_cast<int>(odd),
                                sum,
                                most,
                                static_cast<int>(same),
                                sum,
                                most,
                                sum8,
                                v(warp + (lane ^ 1)),
                                v(warp + 31)};
    for (int k = 0; k < kWarpOps; ++k)
      EXPECT_EQ(got[static_cast<size_t>(i * kWarpOps + k)], want[k]) << "op " << k << " at " << i;
  }
}

TEST(Device, DynamicSharedMemory) {
  constexpr int blocks = 5;
  const std::vector<int> values = small_integers(blocks * 96);
  DeviceArray<int> in(values), out(values.size());
  for (const size_t bytes : {size_t{384}, size_t{48 * 1024}, size_t{96 * 1024}}) {
    ASSERT_STATUS(reverse_blocks(in.data(), out.data(), blocks, bytes));
    const std::vector<int> got = out.get();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], values[i / 96 * 96 + 95 - i % 96]) << bytes << " bytes, at " << i;
  }
}

TEST(Device, BlockReductions) {
  for (const int threads : {32, 64, 96, 256, 1024}) {
    constexpr int reductions = 3;
    const auto n = static_cast<size_t>(threads);
    const std::vector<int> integers = small_integers(n * reductions);
    const std::vector<float> values(integers.begin(), integers.end());
    DeviceArray<float> x(values), sums(n), maxima(n);
    ASSERT_STATUS(block_reductions(threads, x.data(), reductions, sums.data(), maxima.data()));
    float sum = 0, maximum = 0;
    for (size_t k = 0; k < reductions; ++k) {
      const auto first = values.begin() + static_cast<ptrdiff_t>(k * n);
      sum += std::accumulate(first, first + threads, static_cast<float>(threads));
      maximum += *std::max_element(first, first + threads);
    }
    for (const float s : sums.get()) ASSERT_EQ(s, sum) << threads << " threads";
    for (const float m : maxima.get()) ASSERT_EQ(m, maximum) << threads << " threads";
  }
}

TEST(Device, MaximumKeepsNan) {
  for (const size_t at : {size_t{0}, size_t{37}, size_t{255}}) {
    std::vector<float> values(256, 1.0f);
    values[at] = std::numeric_limits<float>::quiet_NaN();
    DeviceArray<float> x(values), sums(256), maxima(256);
    ASSERT_STATUS(block_reductions(256, x.data(), 1, sums.data(), maxima.data()));
    for (const float m : maxima.get()) ASSERT_TRUE(std::isnan(m)) << "NaN at " << at;
  }
}

TEST(Device, ReductionOfStruct) {
  const std::vector<float> values = normal(1000, 3.0f);
  DeviceArray<float> x(values), maximum(1), sum(1);
  ASSERT_STATUS(online_softmax(x.data(), 1000, maximum.data(), sum.data()));
  const float m = *std::max_element(values.begin(), values.end());
  double s = 0;
  for (const float v : values) s += std::exp(static_cast<double>(v) - m);
  EXPECT_EQ(maximum.get()[0], m);
  EXPECT_NEAR(sum.get()[0], s, 1e-5 * s);
}

TEST(Device, Atomics) {
  constexpr int blocks = 7;
  constexpr unsigned n = blocks * 128;
  DeviceArray<unsigned> out(std::vector<unsigned>{0, 0, 1000000, 0, ~0u, 0, 0, 0});
  DeviceArray<float> sum(std::vector<float>{0.0f});
  ASSERT_STATUS(atomics(blocks, out.data(), sum.data()));
  unsigned all_xor = 0;
  for (unsigned i = 0; i < n; ++i) all_xor ^= i;
  EXPECT_EQ(out.get(), (std::vector<unsigned>{n, n - 1, 0, ~0u, 0xffffff00u, all_xor, 0, 2 * n}));
  EXPECT_EQ(sum.get()[0], n / 2.0f);
}

TEST(Device, Indices) {
  DeviceArray<unsigned> out(3 * 4 * 5 * 8 * 3 * 2);
  ASSERT_STATUS(indices(3, 4, 5, 8, 3, 2, out.data()));
  const std::vector<unsigned> got = out.get();
  for (unsigned i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i);
}

TEST(Device, Clusters) {
  const DeviceInfo device = device_info();
  for (const unsigned cluster : {1u, 2u, 4u, 8u}) {
    if (device.kind == "cuda" && device.compute_major < 9 && cluster > 1) continue;
    DeviceArray<int> out(16);
    ASSERT_STATUS(cluster_sums(16, cluster, out.data()));
    const std::vector<int> got = out.get();
    for (unsigned b = 0; b < 16; ++b) {
      int want = 0;
      for (unsigned r = 0; r < cluster; ++r)
        want += static_cast<int>(b / cluster * cluster + r) + 1;
      EXPECT_EQ(got[b], want) << "block " << b << ", clusters of " << cluster;
    }
  }
}

TEST(Device, ClusterExchange) {
  const DeviceInfo device = device_info();
  const bool clusters = device.kind != "cuda" || device.compute_major >= 9;
  for (const unsigned cluster : {1u, 2u, 4u, 8u}) {
    if (cluster > 1 && !clusters) continue;
    DeviceArray<int> out(16);
    ASSERT_STATUS(exchanged_sums(16, cluster, out.data()));
    const std::vector<int> got = out.get();
    for (unsigned b = 0; b < 16; ++b) {
      int want = 0;
      for (unsigned r = 0; r < cluster; ++r)
        want += 64 * static_cast<int>(b / cluster * cluster + r);
      EXPECT_EQ(got[b], want) << "block " << b << ", clusters of " << cluster;
    }
  }
}

void expect_row_sums(const std::vector<float>& x, const std::vector<float>& got, int tiles) {
  const size_t row = static_cast<size_t>(tiles) * kTile;
  for (size_t r = 0; r < got.size(); ++r) {
    double want = 0;
    for (size_t i = 0; i < row; ++i) want += x[r * row + i];
    EXPECT_NEAR(got[r], want, 1e-3) << tiles << " tiles, row " << r;
  }
}

TEST(Device, AsynchronousCopies) {
  const DeviceInfo device = device_info();
  for (const int tiles : {1, 2, 5}) {
    const std::vector<float> values = normal(static_cast<size_t>(3 * tiles * kTile));
    DeviceArray<float> x(values), out(3);
    ASSERT_STATUS(async_row_sums(x.data(), 3, tiles, out.data()));
    expect_row_sums(values, out.get(), tiles);
    if (device.kind == "cuda" && device.compute_major < 9) continue;
    ASSERT_STATUS(bulk_row_sums(x.data(), 3, tiles, out.data()));
    expect_row_sums(values, out.get(), tiles);
  }
}

template <class T>
void copies_elements() {
  constexpr int n = 133;
  std::vector<T> values(n);
  for (int i = 0; i < n; ++i) values[static_cast<size_t>(i)] = T(i);
  DeviceArray<T> in(values), out(n);
  ASSERT_STATUS(copy_elements(in.data(), out.data(), n));
  EXPECT_EQ(out.get(), values);
}

TEST(Device, CopiesElementsOfEveryType) {
  copies_elements<double>();
  copies_elements<float>();
  copies_elements<bf16>();
  copies_elements<f16>();
  copies_elements<int64_t>();
  copies_elements<int32_t>();
  copies_elements<uint8_t>();
}

// Conversions in kernels give the bits of those on the host, also for NaN: of all values of T, of
// what lies half-way and beside, and of others.
template <class T>
void converts() {
  std::vector<float> values = normal(4099, 100.0f);
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const float special :
       {0.0f, -0.0f, tiny, 6e-8f, 3e-8f, 65504.0f, 65519.9f, 65520.0f, 3.4e38f, INFINITY, -INFINITY,
        std::numeric_limits<float>::quiet_NaN()})
    values.push_back(special);
  if constexpr (sizeof(T) == 2) {
    for (unsigned bits = 0; bits <= 0xffff; ++bits) {
      const auto low = static_cast<float>(T::from_bits(static_cast<uint16_t>(bits)));
      const auto high = static_cast<float>(T::from_bits(static_cast<uint16_t>(bits + 1)));
      const float middle = low + (high - low) / 2;
      for (const float v : {low, middle, std::nextafter(middle, low), std::nextafter(middle, high)})
        values.push_back(v);
    }
  }
  DeviceArray<float> x(values), back(values.size());
  DeviceArray<T> rounded(values.size());
  ASSERT_STATUS(convert(x.data(), rounded.data(), back.data(), static_cast<int>(values.size())));
  const std::vector<T> got = rounded.get();
  const std::vector<float> got_back = back.get();
  for (size_t i = 0; i < values.size(); ++i) {
    const T want(values[i]);
    ASSERT_EQ(std::memcmp(&got[i], &want, sizeof want), 0) << values[i];
    ASSERT_TRUE(got_back[i] == static_cast<float>(want) || std::isnan(values[i])) << values[i];
    ASSERT_EQ(std::isnan(got_back[i]), std::isnan(values[i])) << values[i];
  }
}

TEST(Device, ConvertsBf16) { converts<bf16>(); }
TEST(Device, ConvertsF16) { converts<f16>(); }
TEST(Device, ConvertsF32) { converts<float>(); }

// Distance of `got` from `want` in units of the last place of a float at `want`.
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
  if (std::abs(want) >= 0x1.ffffffp127) return got == static_cast<float>(want) ? 0 : INFINITY;
  const int exponent = std::max(want == 0 ? -126 : std::ilogb(want), -126);
  return std::abs(got - want) / std::ldexp(1.0, exponent - 23);
}

TEST(Device, MathFunctions) {
  std::vector<float> values;
  for (float x = -104.0f; x < 104.0f; x += 0.037f) values.push_back(x);
  for (float x = 1e-38f; x < 1e38f; x *= 1.13f) {
    values.push_back(x);
    values.push_back(-x);
  }
  for (const float special : {0.0f, 1.0f, -1.0f, 0.625f, 0.99999994f, 1.0000001f, 88.7f, 128.0f,
                              -149.0f, INFINITY, -INFINITY})
    values.push_back(special);
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  const auto n = static_cast<int>(values.size());
  DeviceArray<float> x(values), y(values.size() * kMathFunctions);
  ASSERT_STATUS(math_functions(x.data(), y.data(), n));
  const std::vector<float> got = y.get();
  struct Function {
    const char* name;
    double (*exact)(double);
    double allowed;        // ulps
    double allowed_per_x;  // further ulps per unit of |x|
  };
  const Function functions[kMathFunctions] = {
      {"exp", [](double v) { return std::exp(v); }, 3, 1.2},
      {"exp2", [](double v) { return std::exp2(v); }, 3, 0},
      {"log", [](double v) { return std::log(v); }, 2, 0},
      {"log2", [](double v) { return std::log2(v); }, 2, 0},
      {"rsqrt", [](double v) { return 1 / std::sqrt(v); }, 3, 0},
      {"tanh", [](double v) { return std::tanh(v); }, 5, 0},
      {"sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }, 6, 1.2},
      {"1 / x", [](double v) { return 1 / v; }, 3, 0}};
  for (int f = 0; f < kMathFunctions; ++f) {
    for (int i = 0; i < n; ++i) {
      const float v = values[static_cast<size_t>(i)];
      const float r = got[static_cast<size_t>(f * n + i)];
      const double scale = std::isfinite(v) ? std::min(std::abs(v), 104.0f) : 0.0f;
      const double allowed = functions[f].allowed + functions[f].allowed_per_x * scale;
      const double want = functions[f].exact(v);
      if (!(ulps(r, want) <= allowed))
        ADD_FAILURE() << functions[f].name << " at " << v << ": " << r << " instead of " << want
                      << ", " << ulps(r, want) << " ulp";
    }
  }
}

TEST(Device, EmptyGridIsNothingToDo) {
  DeviceArray<int> out(1);
  ASSERT_STATUS(cluster_sums(0, 1, out.data()));
}

TEST(Device, RefusedLaunchIsAnErrorOnce) {
  DeviceArray<int> in(96), out(96);
  EXPECT_FALSE(reverse_blocks(in.data(), out.data(), 1, 1 << 20).ok());
  ASSERT_STATUS(indices(1, 1, 1, 96, 1, 1, reinterpret_cast<unsigned*>(out.data())));
}

TEST(Runtime, CountsMemory) {
  const MemoryStats before = device_memory_stats();
  device_memory_reset_high_water();
  {
    DeviceBuffer a(1000);
    DeviceBuffer b(std::move(a));
    DeviceBuffer c(500);
    EXPECT_EQ(device_memory_stats().current, before.current + 1500);
    EXPECT_EQ(device_memory_stats().allocations, before.allocations + 2);
  }
  EXPECT_EQ(device_memory_stats().current, before.current);
  EXPECT_EQ(device_memory_stats().high_water, before.current + 1500);
  EXPECT_THROW(device_alloc(size_t{1} << 60), DeviceOutOfMemory);
  EXPECT_EQ(device_memory_stats().current, before.current);
  int local = 0;
  EXPECT_THROW(device_free(&local), DeviceError);
  EXPECT_GT(device_free_bytes(), 0u);
}

TEST(Runtime, CopiesAndFills) {
  const std::vector<int> values = small_integers(1000);
  DeviceArray<int> a(values), b(1000);
  device_copy(b.data(), a.data(), 4000);
  EXPECT_EQ(b.get(), values);
  device_fill(b.data(), 0x11, 4000);
  EXPECT_EQ(b.get(), std::vector<int>(1000, 0x11111111));
}

TEST(Runtime, GraphReplays) {
  const Stream stream = stream_create();
  DeviceArray<int> a(std::vector<int>(4, 7)), b(std::vector<int>(4, 0));
  Graph graph;
  EXPECT_THROW(graph.replay(stream), DeviceError);
  graph.capture(stream, [&](Stream s) { device_copy(b.data(), a.data(), 16, s); });
  a.set({1, 2, 3, 4});
  GpuTimer timer;
  timer.start(stream);
  graph.replay(stream);
  timer.stop(stream);
  stream_synchronize(stream);
  EXPECT_EQ(b.get(), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_GE(timer.seconds(), 0.0);
  stream_destroy(stream);
}

TEST(Runtime, DescribesTheDevice) {
  const DeviceInfo d = device_info();
  EXPECT_TRUE(d.kind == "host" || d.kind == "cuda");
  EXPECT_FALSE(d.name.empty());
  EXPECT_GT(d.sm_count, 0);
  EXPECT_GT(d.memory_bytes, 0u);
}

}  // namespace
}  // namespace tigon::device_tests
