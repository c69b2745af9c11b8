// SPDX-License-Identifier: Apache-2.0
// Which fences let a bulk copy overwrite what threads have accessed. The answers are PTX's: between
// the access and the copy a proxy fence lies on the path of barriers that orders the two.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/device/tests/device_array.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tests/fences.h"
#include "kernels/simt/tests/saved_settings.h"

namespace tigon::simt_tests {
namespace {

constexpr Handover kHandovers[] = {Handover::kSyncthreads, Handover::kSyncwarp,
                                   Handover::kClusterSync, Handover::kMbarrier,
                                   Handover::kLaneArrives};

class FencesTest : public testing::TestWithParam<std::tuple<FenceBy, Handover>> {
 private:
  SavedSettings settings_;
};

TEST_P(FencesTest, AreMissedWhereTheyAreMissing) {
  const auto [fence, handover] = GetParam();
  const bool right = fence == FenceBy::kAll || fence == FenceBy::kIssuer;
  std::vector<float> values(2 * kFencedTile);
  std::iota(values.begin(), values.end(), 1.0f);
  DeviceArray<float> x(values), out(values.size());
  for (const simt::Schedule schedule : {simt::Schedule::kSequential, simt::Schedule::kUniform,
                                        simt::Schedule::kAhead, simt::Schedule::kReverse})
    for (const bool write : {false, true})
      for (const unsigned issuer : {0u, 17u}) {
        SCOPED_TRACE(testing::Message() << "schedule " << static_cast<int>(schedule) << ", write "
                                        << write << ", issuer " << issuer);
        simt::config().schedule = schedule;
        simt::reports_reset();
        const unsigned threads = handover == Handover::kSyncwarp ? 32 : 64;
        const Status status =
            overwrite_tile({write, fence, handover, threads, issuer}, x.data(), out.data());
        EXPECT_EQ(status.ok(), right) << status.reason;
        if (right) {
          EXPECT_EQ(out.get(), values);
        } else {
          ASSERT_EQ(simt::reports().size(), 1u);
          EXPECT_EQ(simt::reports()[0].kind, simt::Kind::kFence) << status.reason;
          EXPECT_TRUE(simt::reports()[0].has_earlier);
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Checker, FencesTest,
                         testing::Combine(testing::Values(FenceBy::kNobody, FenceBy::kAllTooEarly,
                                                          FenceBy::kAll, FenceBy::kIssuerTooEarly,
                                                          FenceBy::kIssuer),
                                          testing::ValuesIn(kHandovers)));

}  // namespace
}  // namespace tigon::simt_tests
