// SPDX-License-Identifier: Apache-2.0
// Attention: the kernel and the host's version against plain formulas in double.
#include "convergence/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/device/runtime.h"

namespace tigon::convergence {
namespace {

double wave(int64_t i) { return std::sin(0.7 * static_cast<double>(i % 1009)) * 1.3; }

struct Reference {
  std::vector<double> out, dqkv;
};

double dot(const std::vector<double>& a, int64_t i, const std::vector<double>& b, int64_t j,
           int64_t n) {
  double sum = 0;
  for (int64_t d = 0; d < n; ++d)
    sum += a[static_cast<size_t>(i + d)] * b[static_cast<size_t>(j + d)];
  return sum;
}

// softmax(q k^T c) v of every head, with the scores capped, and its derivative for upstream dout.
// Where backward reads the output, it reads `rounded`.
Reference attend(const AttentionShape& s, const std::vector<double>& qkv,
                 const std::vector<double>& dout, const std::vector<double>& rounded) {
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  Reference r{std::vector<double>(dout.size()), std::vector<double>(qkv.size())};
  const int64_t row = s.row(), d = s.head_size;
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  for (int64_t t = 0; t < s.tokens(); ++t)
    for (int64_t head = 0; head < s.heads; ++head) {
      const int64_t kv = head / (s.heads / s.kv_heads), begin = t / s.sequence * s.sequence;
      const int64_t q = t * row + head * d, o = t * s.q_size() + head * d;
      const int64_t k_column = s.q_size() + kv * d, v_column = k_column + s.kv_heads * d;
      std::vector<double> p, slope;
      double total = 0;
      for (int64_t key = begin; key <= t; ++key) {
        const double score = scale * dot(qkv, q, qkv, key * row + k_column, d);
        const double t_cap = s.softcap > 0 ? std::tanh(score / s.softcap) : 0;
        slope.push_back(scale * (1 - t_cap * t_cap));
        total += p.emplace_back(std::exp(s.softcap > 0 ? s.softcap * t_cap : score));
      }
      const double delta = dot(dout, o, rounded, o, d);
      for (size_t j = 0; j < p.size(); ++j) {
        p[j] /= total;
        const int64_t key = (begin + static_cast<int64_t>(j)) * row;
        const double ds = p[j] * (dot(dout, o, qkv, key + v_column, d) - delta) * slope[j];
        for (int64_t n = 0; n < d; ++n) {
          r.out[at(o + n)] += p[j] * qkv[at(key + v_column + n)];
          r.dqkv[at(q + n)] += ds * qkv[at(key + k_column + n)];
          r.dqkv[at(key + k_column + n)] += ds * qkv[at(q + n)];
          r.dqkv[at(key + v_column + n)] += p[j] * dout[at(o + n)];
        }
      }
    }
  return r;
}

template <class Elem>
DeviceBuffer upload(const std::vector<Elem>& v) {
  DeviceBuffer buffer(v.size() * sizeof(Elem));
  device_upload(buffer.data(), v.data(), buffer.bytes());
  return buffer;
}

template <class Elem>
std::vector<double> download(const DeviceBuffer& buffer) {
  std::vector<Elem> v(buffer.bytes() / sizeof(Elem));
  device_download(v.data(), buffer.data(), buffer.bytes());
  std::vector<double> d;
  for (Elem e : v) d.push_back(static_cast<double>(e));
  return d;
}

// Scores of up to 20 are rounded before they are exponents.
constexpr double kSlack = 1e-5;

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double unit) {
  double largest = 0;
  for (double w : want) largest = std::max(largest, std::abs(w));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_LE(std::abs(got[i] - want[i]), unit * std::abs(want[i]) + kSlack * largest) << i;
}

template <class P>
void compare(const AttentionShape& s, bool on_host) {
  using Elem = typename P::Elem;
  std::vector<Elem> qkv, dout;
  for (int64_t i = 0; i < s.tokens() * s.row(); ++i) qkv.push_back(Elem(wave(i)));
  for (int64_t i = 0; i < s.tokens() * s.q_size(); ++i) dout.push_back(Elem(wave(i + 77)));
  const DeviceBuffer qkv_d = upload(qkv), dout_d = upload(dout);
  const DeviceBuffer out(dout.size() * sizeof(Elem)), dqkv(qkv.size() * sizeof(Elem));
  const DeviceBuffer lse(static_cast<size_t>(s.tokens() * s.heads) * sizeof(float));
  const DeviceBuffer delta(delta_bytes(s));

  const AttentionForward<P> forward{s, qkv_d.as<Elem>(), out.as<Elem>(), lse.as<float>()};
  Status status =
      on_host ? attention_host_forward(forward) : attention_kernel_forward(forward, nullptr);
  ASSERT_TRUE(status.ok()) << status.reason;
  const std::vector<double> q(download<Elem>(qkv_d)), g(download<Elem>(dout_d));
  const Reference want = attend(s, q, g, download<Elem>(out));
  const double unit = 2 * unit_roundoff(dtype_of<Elem>);
  expect_near(download<Elem>(out), want.out, unit);

  const AttentionBackward<P> backward{s,
                                      qkv_d.as<Elem>(),
                                      out.as<Elem>(),
                                      dout_d.as<Elem>(),
                                      lse.as<float>(),
                                      dqkv.as<Elem>(),
                                      {delta.data(), delta.bytes()}};
  status =
      on_host ? attention_host_backward(backward) : attention_kernel_backward(backward, nullptr);
  ASSERT_TRUE(status.ok()) << status.reason;
  expect_near(download<Elem>(dqkv), want.dqkv, unit);
}

const AttentionShape kShapes[] = {
    {1, 1, 1, 1, 32},  {2, 100, 4, 2, 32},       {1, 130, 2, 1, 64},       {2, 65, 2, 2, 128},
    {1, 64, 3, 1, 32}, {1, 130, 2, 1, 64, 2.0f}, {2, 65, 2, 2, 128, 50.0f}};

TEST(Attention, KernelF32) {
  for (const AttentionShape& s : kShapes) compare<F32>(s, false);
}
TEST(Attention, KernelBF16) {
  for (const AttentionShape& s : kShapes) compare<BF16>(s, false);
}
#ifndef TIGON_CUDA
TEST(Attention, HostF32) {
  for (const AttentionShape& s : kShapes) compare<F32>(s, true);
}
TEST(Attention, HostBF16) {
  for (const AttentionShape& s : kShapes) compare<BF16>(s, true);
}
#endif
TEST(Attention, RefusesTooLittleScratch) {
  AttentionBackward<F32> args{};
  args.shape = {1, 8, 1, 1, 32};
  EXPECT_EQ(attention_kernel_backward(args, nullptr).code, Status::kInvalidArgument);
}
TEST(Attention, RefusesOtherHeadSizes) {
  EXPECT_EQ(attention_kernel_forward(
                AttentionForward<F32>{{1, 1, 1, 1, 48}, nullptr, nullptr, nullptr}, nullptr)
                .code,
            Status::kUnsupported);
}

}  // namespace
}  // namespace tigon::convergence
