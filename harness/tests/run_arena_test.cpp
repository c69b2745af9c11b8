// SPDX-License-Identifier: Apache-2.0
// Guards and poison of a case's tensors.
#include "harness/run/memory/arena.h"

#include <gtest/gtest.h>

#include "harness/run/executor.h"

namespace tigon {
namespace {

void put(void* p, unsigned char byte) { device_upload(p, &byte, 1); }

std::optional<std::string> damage_of(const ArenaTensor& t) {
  std::optional<std::string> damage;
  t.inspect(&damage);
  return damage;
}

TEST(ArenaTensor, poisons_each_byte_of_its_elements) {
  for (const int gap : {0, 3}) {
    ArenaTensor t("x", DType::kF32, {7, 5}, gap, 1);
    t.set_round(0);
    t.poison(kPoisons[1]);
    std::optional<std::string> damage;
    EXPECT_EQ(t.download(&damage), std::vector<std::byte>(140, std::byte{kPoisons[1]})) << gap;
    EXPECT_FALSE(damage) << *damage;
  }
}

TEST(ArenaTensor, sees_a_byte_beside_its_elements_without_reading_them) {
  if (executor_checks()) GTEST_SKIP() << "has red zones of its own";
  constexpr int kBytes = 1000;
  for (const int round : {0, 1}) {
    ArenaTensor t("x", DType::kU8, {kBytes}, 0, 0);
    auto* data = static_cast<char*>(t.ref().data);
    const auto damaged_at = [&](int at) {
      t.set_round(round);
      t.poison(kPoisons[round]);
      EXPECT_FALSE(damage_of(t));
      put(data + at, 0x33);
      return damage_of(t).value_or("none");
    };
    EXPECT_EQ(damaged_at(-1), "1 bytes before x");
    EXPECT_EQ(damaged_at(-static_cast<int>(kGuardBytes)), "512 bytes before x");
    EXPECT_EQ(damaged_at(kBytes), "0 bytes behind the end of x");
    EXPECT_EQ(damaged_at(kBytes + static_cast<int>(kGuardBytes) - 1),
              "511 bytes behind the end of x");
    EXPECT_EQ(damaged_at(0), "none");
    EXPECT_EQ(damaged_at(kBytes - 1), "none");
  }
}

TEST(ArenaTensor, guards_far_rows_in_little_memory) {
  if (executor_checks()) GTEST_SKIP() << "has red zones of its own";
  constexpr int kGap = 1 << 30;
  ArenaTensor t("x", DType::kF32, {3, 5}, kGap, 1);
  ASSERT_GT((t.ref().shape[0] - 1) * t.ref().stride[0], int64_t{1} << 31);
  std::vector<std::byte> values(15 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i);
  t.set_round(0);
  t.upload(values);
  std::optional<std::string> damage;
  EXPECT_EQ(t.download(&damage), values);
  EXPECT_FALSE(damage) << *damage;
  float* last = static_cast<float*>(t.ref().data) + 2 * t.ref().stride[0];
  const float sixth = 1;
  device_upload(last + 5, &sixth, sizeof sixth);
  t.download(&damage);
  ASSERT_TRUE(damage);
  EXPECT_NE(damage->find("0 bytes behind the end of x"), std::string::npos) << *damage;
}

}  // namespace
}  // namespace tigon
