// SPDX-License-Identifier: Apache-2.0
// What the engines do not take is refused with a reason, before anything is launched: no GPU is
// needed. That they are right is what `tigon check --impl cudnn` says.
#include <gtest/gtest.h>

#include <string>

#include "reference/cudnn/layer_norm.h"
#include "reference/cudnn/rms_norm.h"
#include "reference/cudnn/softmax.h"

namespace tigon::cudnn {
namespace {

// Never read: every call of it is refused.
template <class T>
T* nowhere(uintptr_t address = 4096) {
  return reinterpret_cast<T*>(address);  // NOLINT: an address is what is tested
}

void expect_refused(const Status& s, const std::string& words) {
  EXPECT_EQ(s.code, Status::kUnsupported);
  EXPECT_NE(std::string(s.reason).find(words), std::string::npos) << s.reason;
}

constexpr int64_t kT = 4, kH = 64;

tigon::rms_norm::Forward<BF16> rms_forward() {
  tigon::rms_norm::Forward<BF16> a;
  a.x = view(nowhere<const bf16>(), kT, kH);
  a.w = view(nowhere<const bf16>(), kH);
  a.y = view(nowhere<bf16>(), kT, kH);
  a.rstd = view(nowhere<float>(), kT);
  return a;
}

tigon::rms_norm::Backward<BF16> rms_backward() {
  tigon::rms_norm::Backward<BF16> a;
  a.dy = a.x = view(nowhere<const bf16>(), kT, kH);
  a.w = view(nowhere<const bf16>(), kH);
  a.rstd = view(nowhere<const float>(), kT);
  a.dx = view(nowhere<bf16>(), kT, kH);
  a.dw = view(nowhere<float>(), kH);
  return a;
}

TEST(CudnnRefuses, rows_with_gaps) {
  auto a = rms_forward();
  a.y.stride[0] += 8;
  expect_refused(rms_norm::forward(a, {}, nullptr), "rows without gaps");
  EXPECT_EQ(rms_norm::workspace(a), 0u);
  tigon::softmax::Forward<F32> s;
  s.x = view(nowhere<const float>(), kT, kH);
  s.y = view(nowhere<float>(), kT, kH);
  s.x.stride[0] += 1;
  expect_refused(softmax::forward(s, {}, nullptr), "rows without gaps");
}

TEST(CudnnRefuses, addresses_off_16_bytes) {
  auto a = rms_forward();
  a.x.data = nowhere<const bf16>(4096 + 2);
  expect_refused(rms_norm::forward(a, {}, nullptr), "multiples of 16 bytes");
  auto b = rms_backward();
  b.dw.data = nowhere<float>(4096 + 4);
  expect_refused(rms_norm::backward(b, {}, nullptr), "multiples of 16 bytes");
}

TEST(CudnnRefuses, gradients_and_a_bias_of_a_weight_that_is_left_out) {
  auto a = rms_backward();
  a.w = {};
  expect_refused(rms_norm::backward(a, {}, nullptr), "dw only where there is a w");
  tigon::layer_norm::Forward<BF16> f;
  f.x = view(nowhere<const bf16>(), kT, kH);
  f.b = view(nowhere<const bf16>(), kH);
  f.y = view(nowhere<bf16>(), kT, kH);
  f.mean = f.rstd = view(nowhere<float>(), kT);
  expect_refused(layer_norm::forward(f, {}, nullptr), "b only where there is a w");
  tigon::layer_norm::Backward<BF16> b;
  b.dy = b.x = view(nowhere<const bf16>(), kT, kH);
  b.mean = b.rstd = view(nowhere<const float>(), kT);
  b.dx = view(nowhere<bf16>(), kT, kH);
  b.db = view(nowhere<float>(), kH);
  expect_refused(layer_norm::backward(b, {}, nullptr), "dw and db only where there is a w");
}

TEST(CudnnRefuses, nothing_where_there_are_no_rows) {
  auto a = rms_forward();
  a.x.shape[0] = a.y.shape[0] = a.rstd.shape[0] = 0;
  EXPECT_TRUE(rms_norm::forward(a, {}, nullptr).ok());
  EXPECT_EQ(rms_norm::workspace(a), 0u);
}

}  // namespace
}  // namespace tigon::cudnn
