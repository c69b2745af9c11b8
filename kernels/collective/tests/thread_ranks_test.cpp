// SPDX-License-Identifier: Apache-2.0
#include "kernels/collective/thread_ranks.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/device/runtime.h"

namespace tigon {
namespace {

using namespace std::chrono_literals;
using testing::IsSubstring;

constexpr std::chrono::milliseconds kLong = 60s, kShort = 200ms;

template <class T>
DeviceBuffer on_device(const std::vector<T>& values) {
  DeviceBuffer buffer(values.size() * sizeof(T));
  device_upload(buffer.data(), values.data(), buffer.bytes());
  return buffer;
}
template <class T>
std::vector<T> on_host(const DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  device_download(values.data(), buffer.data(), buffer.bytes());
  return values;
}

// Values of a rank that are exact in every type, and so are their sums.
template <class T>
std::vector<T> values_of(int rank, int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<T>(static_cast<float>((rank + 1) * (i % 7))));
  return values;
}
template <class T>
void expect_sums(const std::vector<T>& sums, int ranks, int64_t first) {
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto of_first = static_cast<float>((first + static_cast<int64_t>(i)) % 7);
    EXPECT_EQ(static_cast<float>(sums[i]), of_first * static_cast<float>(ranks * (ranks + 1) / 2))
        << i;
  }
}

TEST(ThreadRanks, gather_in_the_order_of_ranks) {
  for (const int ranks : {1, 2, 5}) {
    const Status s = run_ranks(ranks, kLong, [&](Communicator& c) {
      EXPECT_EQ(c.size(), ranks);
      const DeviceBuffer send = on_device(std::vector<int>(3, 10 + c.rank()));
      const DeviceBuffer receive(send.bytes() * static_cast<size_t>(ranks));
      const Status gathered = c.all_gather(send.data(), receive.data(), send.bytes(), nullptr);
      const std::vector<int> all = on_host<int>(receive);
      for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], 10 + static_cast<int>(i) / 3) << i;
      return gathered;
    });
    EXPECT_TRUE(s.ok()) << s.reason;
  }
}

template <class T>
class Sums : public testing::Test {};
using Types = testing::Types<float, bf16, f16>;
TYPED_TEST_SUITE(Sums, Types);

TYPED_TEST(Sums, are_reduced_and_scattered) {
  const int ranks = 4;
  const int64_t count = 5;
  const DType type = dtype_of<TypeParam>;
  const Status s = run_ranks(ranks, kLong, [&](Communicator& c) {
    const DeviceBuffer all = on_device(values_of<TypeParam>(c.rank(), ranks * count));
    const DeviceBuffer part(count * sizeof(TypeParam));
    if (const Status status = c.reduce_scatter(all.data(), part.data(), count, type, nullptr);
        !status.ok())
      return status;
    expect_sums(on_host<TypeParam>(part), ranks, c.rank() * count);
    const Status status = c.all_reduce(all.data(), ranks * count, type, nullptr);
    expect_sums(on_host<TypeParam>(all), ranks, 0);
    return status;
  });
  EXPECT_TRUE(s.ok()) << s.reason;
}

TEST(ThreadRanks, round_a_sum_once) {
  const Status s = run_ranks(3, kLong, [](Communicator& c) {
    // A step of bf16 at 1 is 2^-7: one of the small terms alone rounds away, both do not.
    const float own = c.rank() == 0 ? 1.0f : 0x1p-8f;
    const DeviceBuffer values = on_device(std::vector<bf16>{bf16(own)});
    const Status status = c.all_reduce(values.data(), 1, DType::kBF16, nullptr);
    EXPECT_EQ(static_cast<float>(on_host<bf16>(values)[0]), 1.0f + 0x1p-7f);
    return status;
  });
  EXPECT_TRUE(s.ok()) << s.reason;
}

TEST(ThreadRanks, of_nothing_take_no_memory) {
  const Status s = run_ranks(2, kLong, [](Communicator& c) {
    if (const Status status = c.all_gather(nullptr, nullptr, 0, nullptr); !status.ok())
      return status;
    return c.all_reduce(nullptr, 0, DType::kF32, nullptr);
  });
  EXPECT_TRUE(s.ok()) << s.reason;
}

Status sum_one(Communicator& c) {
  const DeviceBuffer value = on_device(std::vector<float>{1});
  return c.all_reduce(value.data(), 1, DType::kF32, nullptr);
}

TEST(ThreadRanks, end_when_one_fails) {
  const Status s = run_ranks(3, kLong, [](Communicator& c) {
    if (c.rank() == 1) return invalid("its targets are missing");
    return sum_one(c);
  });
  EXPECT_EQ(s.code, Status::kLaunchFailed);
  EXPECT_PRED_FORMAT2(IsSubstring, "rank 1 of 3 has left: its targets are missing", s.reason);
}

TEST(ThreadRanks, end_when_one_throws) {
  const Status s = run_ranks(2, kLong, [](Communicator& c) -> Status {
    if (c.rank() == 0) throw std::runtime_error("no memory");
    return sum_one(c);
  });
  EXPECT_PRED_FORMAT2(IsSubstring, "rank 0 of 2 has left: no memory", s.reason);
}

TEST(ThreadRanks, end_when_one_is_done_too_early) {
  const Status s =
      run_ranks(2, kLong, [](Communicator& c) { return c.rank() == 0 ? Status{} : sum_one(c); });
  EXPECT_EQ(s.code, Status::kLaunchFailed);
  EXPECT_PRED_FORMAT2(IsSubstring, "rank 0 of 2 has left", s.reason);
}

TEST(ThreadRanks, end_when_one_hangs) {
  const Status s = run_ranks(2, kShort, [](Communicator& c) {
    if (c.rank() == 0) std::this_thread::sleep_for(5 * kShort);
    return sum_one(c);
  });
  EXPECT_EQ(s.code, Status::kLaunchFailed);
  EXPECT_PRED_FORMAT2(IsSubstring, "rank 0 of 2 did not come within 200 ms", s.reason);
}

TEST(ThreadRanks, say_what_they_call_where_that_differs) {
  const Status s = run_ranks(2, kLong, [](Communicator& c) {
    const DeviceBuffer values = on_device(std::vector<float>{1, 2});
    return c.all_reduce(values.data(), 1 + c.rank(), DType::kF32, nullptr);
  });
  EXPECT_PRED_FORMAT2(IsSubstring, "rank 0 calls all_reduce of 1 f32, rank 1 all_reduce of 2 f32",
                      s.reason);
}

TEST(ThreadRanks, refuse_what_is_no_sum) {
  float value = 0;
  const auto refused = [&](void* values, int64_t count, DType type) {
    return run_ranks(1, kLong,
                     [&](Communicator& c) { return c.all_reduce(values, count, type, nullptr); });
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "f32, bf16 or f16", refused(&value, 1, DType::kI64).reason);
  EXPECT_PRED_FORMAT2(IsSubstring, "negative", refused(&value, -1, DType::kF32).reason);
  EXPECT_PRED_FORMAT2(IsSubstring, "null", refused(nullptr, 1, DType::kF32).reason);
  EXPECT_EQ(run_ranks(0, kLong, sum_one).code, Status::kInvalidArgument);
}

}  // namespace
}  // namespace tigon
