// SPDX-License-Identifier: Apache-2.0
// cuDNN's attention against our own kernel on a GPU, which another test holds against formulas in
// double.
#include "convergence/cudnn_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "convergence/text_data.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {
namespace {

// Why no kernel can run here, or nothing.
std::string no_device() {
  try {
    device_info();
    return "";
  } catch (const DeviceError& e) {
    return e.what();
  }
}

// Why cuDNN's attention cannot run here, or nothing.
std::string obstacle() {
  if (cudnn_attention_version().empty()) return "this build has no cudnn-frontend";
  return no_device();
}

template <class Elem>
DeviceBuffer random_elements(int64_t n, uint64_t stream) {
  std::vector<Elem> host;
  for (int64_t i = 0; i < n; ++i)
    host.push_back(
        Elem(static_cast<float>(random_bits(1, stream, static_cast<uint64_t>(i)) >> 40) * 0x1p-22f -
             2.0f));
  DeviceBuffer buffer(host.size() * sizeof(Elem));
  device_upload(buffer.data(), host.data(), buffer.bytes());
  return buffer;
}

template <class T>
std::vector<double> download(const DeviceBuffer& buffer) {
  std::vector<T> host(buffer.bytes() / sizeof(T));
  device_download(host.data(), buffer.data(), buffer.bytes());
  return std::vector<double>(host.begin(), host.end());
}

// Everything that forward and backward write; poisoned at first.
struct Outputs {
  DeviceBuffer out, lse, dqkv;
  Outputs(const AttentionShape& s, size_t element)
      : out(static_cast<size_t>(s.tokens() * s.q_size()) * element),
        lse(delta_bytes(s)),
        dqkv(static_cast<size_t>(s.tokens() * s.row()) * element) {
    for (const DeviceBuffer* b : {&out, &lse, &dqkv}) device_fill(b->data(), 0xff, b->bytes());
  }
};

template <class P>
struct Problem {
  using Elem = typename P::Elem;
  static constexpr DType kType = dtype_of<Elem>;
  AttentionShape shape;
  DeviceBuffer qkv, dout;
  explicit Problem(const AttentionShape& s)
      : shape(s),
        qkv(random_elements<Elem>(s.tokens() * s.row(), 1)),
        dout(random_elements<Elem>(s.tokens() * s.q_size(), 2)) {}

  void by_own_kernel(const Outputs& to) const {
    const DeviceBuffer delta(delta_bytes(shape));
    Status s = attention_kernel_forward(
        AttentionForward<P>{shape, qkv.as<Elem>(), to.out.as<Elem>(), to.lse.as<float>()}, nullptr);
    ASSERT_TRUE(s.ok()) << s.reason;
    s = attention_kernel_backward(AttentionBackward<P>{shape,
                                                       qkv.as<Elem>(),
                                                       to.out.as<Elem>(),
                                                       dout.as<Elem>(),
                                                       to.lse.as<float>(),
                                                       to.dqkv.as<Elem>(),
                                                       {delta.data(), delta.bytes()}},
                                  nullptr);
    ASSERT_TRUE(s.ok()) << s.reason;
    device_synchronize();
  }
  void by_cudnn(const Outputs& to, const Scratch& scratch, Stream stream) const {
    Status s = cudnn_attention_forward(
        {shape, kType, qkv.data(), to.out.data(), to.lse.as<float>(), scratch}, stream);
    ASSERT_TRUE(s.ok()) << s.reason;
    s = cudnn_attention_backward({shape, kType, qkv.data(), to.out.data(), dout.data(),
                                  to.lse.as<float>(), to.dqkv.data(), scratch},
                                 stream);
    ASSERT_TRUE(s.ok()) << s.reason;
  }
};

struct Distance {
  double rms, largest;  // of the difference, as shares of those of the wanted numbers
};

Distance distance(const std::vector<double>& got, const std::vector<double>& want) {
  double error = 0, square = 0, largest_error = 0, largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(got[i])) return {INFINITY, INFINITY};
    const double e = got[i] - want[i];
    error += e * e;
    square += want[i] * want[i];
    largest_error = std::max(largest_error, std::abs(e));
    largest = std::max(largest, std::abs(want[i]));
  }
  return {std::sqrt(error / square), largest_error / largest};
}

// cuDNN rounds probabilities and their gradients to the storage type before it multiplies them, of
// which each adds about one rounding to that of the result.
bool is_close(const Distance& d, DType dtype) {
  const double u = unit_roundoff(dtype);
  return d.rms <= 2 * u && d.largest <= 4 * u;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& want, DType dtype,
                  const char* what) {
  const Distance d = distance(got, want);
  EXPECT_TRUE(is_close(d, dtype)) << what << ": rms " << d.rms << ", largest " << d.largest
                                  << " with roundings of " << unit_roundoff(dtype);
}

template <class P>
void compare(const AttentionShape& s) {
  SCOPED_TRACE(testing::Message() << "batch " << s.batch << " T=" << s.sequence << " heads "
                                  << s.heads << '/' << s.kv_heads << " of " << s.head_size);
  using Elem = typename P::Elem;
  const Problem<P> problem(s);
  const CudnnAttentionPlan plan = cudnn_attention_prepare(s, problem.kType);
  ASSERT_EQ(plan.refusal, "");
  const DeviceBuffer memory(std::max(plan.forward_bytes, plan.backward_bytes));
  const Outputs want(s, sizeof(Elem)), got(s, sizeof(Elem)), again(s, sizeof(Elem));
  problem.by_own_kernel(want);
  problem.by_cudnn(got, {memory.data(), memory.bytes()}, nullptr);
  device_synchronize();
  expect_close(download<Elem>(got.out), download<Elem>(want.out), problem.kType, "out");
  // Not stored in 16 bits.
  EXPECT_LT(distance(download<float>(got.lse), download<float>(want.lse)).largest, 1e-5);
  expect_close(download<Elem>(got.dqkv), download<Elem>(want.dqkv), problem.kType, "dqkv");

  // Once more, as a graph.
  Graph graph;
  const Stream stream = stream_create();
  graph.capture(stream, [&](Stream captured) {
    problem.by_cudnn(again, {memory.data(), memory.bytes()}, captured);
  });
  graph.replay(stream);
  stream_synchronize(stream);
  EXPECT_EQ(download<Elem>(again.out), download<Elem>(got.out));
  if (plan.deterministic)
    EXPECT_EQ(download<Elem>(again.dqkv), download<Elem>(got.dqkv));
  else
    expect_close(download<Elem>(again.dqkv), download<Elem>(got.dqkv), problem.kType, "again");
  stream_destroy(stream);
}

const AttentionShape kShapes[] = {{2, 64, 4, 2, 64},    {1, 7, 2, 1, 32},     {2, 128, 4, 4, 32},
                                  {1, 100, 8, 2, 128},  {2, 1024, 16, 8, 64}, {1, 1024, 8, 2, 128},
                                  {3, 300, 12, 12, 64}, {1, 4096, 16, 8, 64}};

TEST(CudnnAttention, IsOurOwnWithinRoundingsOfBF16) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  for (const AttentionShape& s : kShapes) compare<BF16>(s);
}

TEST(CudnnAttention, IsOurOwnWithinRoundingsOfF16) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  compare<F16>({2, 256, 4, 2, 64});
  compare<F16>({1, 100, 4, 1, 128});
}

// The trainer asks for it and gets it; in fp32 and with a softcap it gets our own.
TEST(CudnnAttention, RunsWhereItCan) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  AttentionShape s{2, 128, 4, 2, 64};
  const AttentionPlan before = attention_plan(s, DType::kBF16);
  const AttentionPlan plan = attention_prepare(s, DType::kBF16);
  EXPECT_EQ(plan.by, "cuDNN");
  EXPECT_EQ(before.by, plan.by);
  RecordProperty("estimated_bytes", static_cast<int>(before.backward_bytes));
  RecordProperty("backward_bytes", static_cast<int>(plan.backward_bytes));
  EXPECT_EQ(attention_prepare(s, DType::kF32).by, "own kernel");
  s.softcap = 50.0f;
  EXPECT_EQ(attention_prepare(s, DType::kBF16).by, "own kernel");
}

TEST(CudnnAttention, RefusesTooLittleScratch) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const AttentionShape s{1, 64, 2, 1, 64};
  const Problem<BF16> problem(s);
  const Outputs to(s, sizeof(bf16));
  ASSERT_EQ(cudnn_attention_prepare(s, DType::kBF16).refusal, "");
  EXPECT_EQ(cudnn_attention_backward({s,
                                      DType::kBF16,
                                      problem.qkv.data(),
                                      to.out.data(),
                                      problem.dout.data(),
                                      to.lse.as<float>(),
                                      to.dqkv.data(),
                                      {}},
                                     nullptr)
                .code,
            Status::kInvalidArgument);
}

// What the comparison must see: scores that are a few percent off.
TEST(CudnnAttention, TheBoundSeesAFault) {
  if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
  const AttentionShape s{1, 64, 2, 1, 32};
  AttentionShape capped = s;
  capped.softcap = 8.0f;
  const Outputs want(s, sizeof(bf16)), got(s, sizeof(bf16)), same(s, sizeof(bf16));
  Problem<BF16>(s).by_own_kernel(want);
  Problem<BF16>(s).by_own_kernel(same);
  Problem<BF16>(capped).by_own_kernel(got);
  const auto close = [&](const DeviceBuffer& a, const DeviceBuffer& b) {
    return is_close(distance(download<bf16>(a), download<bf16>(b)), DType::kBF16);
  };
  EXPECT_TRUE(close(same.out, want.out));
  EXPECT_FALSE(close(got.out, want.out));
  EXPECT_FALSE(close(got.dqkv, want.dqkv));
}

}  // namespace
}  // namespace tigon::convergence
