// SPDX-License-Identifier: Apache-2.0
// The experiments: what they report, and what a CPU may not say.
#include "convergence/experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tigon::convergence {
namespace {

const ConvergeObserver kSilent;

std::vector<ClaimReport> quick(const std::string& name) {
  return run_experiment(name, {{.quick = true}, kSilent, nullptr});
}

TEST(Experiment, NamesAreUniqueAndEveryClaimHasItsSource) {
  std::set<std::string> names;
  for (const Experiment& e : experiments()) {
    EXPECT_TRUE(names.insert(e.name).second) << e.name;
    EXPECT_FALSE(e.claims.empty()) << e.name;
    for (const Claim& claim : e.claims) {
      EXPECT_GT(claim.number, 0) << claim.text;
      EXPECT_FALSE(claim.source.empty()) << claim.text;
    }
  }
}

TEST(Experiment, AnUnknownNameIsAnErrorThatNamesTheOthers) {
  try {
    quick("nothing");
    FAIL();
  } catch (const ConvergeError& error) {
    EXPECT_EQ(error.exit_code, 2);
    EXPECT_NE(std::string(error.what()).find("rms_norm"), std::string::npos);
  }
}

TEST(Experiment, KernelsSaveMemoryAndACpuSaysNothingOfSpeed) {
  for (const char* name : {"rms_norm", "cross_entropy"}) {
    const std::vector<ClaimReport> reports = quick(name);
    ASSERT_EQ(reports.size(), 2u);
    const ClaimReport &speed = reports[0], &memory = reports[1];
    EXPECT_EQ(memory.verdict, on_gpu() ? "holds" : "not measured here") << "a small size on a CPU";
    EXPECT_GT(memory.finding.value, 0);
    EXPECT_STREQ(memory.finding.from, kMeasured);
    EXPECT_NE(memory.finding.basis.find("peak of the arena"), std::string::npos);
    if (on_gpu()) continue;
    EXPECT_EQ(speed.verdict, "not measured here");
    EXPECT_TRUE(std::isnan(speed.finding.value));
    EXPECT_NE(speed.finding.reason, "");
    EXPECT_EQ(memory.on.rfind("host executor", 0), 0u) << memory.on;
  }
}

TEST(Experiment, MedusaIsShownWithThreeAndFiveHeadsTrainedAndFrozen) {
  const std::vector<ClaimReport> reports = quick("medusa");
  ASSERT_EQ(reports.size(), 2u);
  const Finding& memory = reports[1].finding;
  EXPECT_GT(memory.value, 0);
  for (const char* what :
       {"3 heads, backbone trained", "3 heads, backbone frozen", "5 heads, backbone frozen"})
    EXPECT_NE(memory.reason.find(what), std::string::npos) << memory.reason;
}

TEST(Experiment, NumbersReadAsTheyArePublished) {
  EXPECT_EQ(show(Quantity::kGain, 0.2), "+20%");
  EXPECT_EQ(show(Quantity::kSaved, 0.6), "-60%");
  EXPECT_EQ(show(Quantity::kSaved, -0.1), "+10%");
  EXPECT_EQ(show(Quantity::kFactor, 3), "3x");
  EXPECT_EQ(show(Quantity::kShare, 0.722), "72.2%");
  EXPECT_EQ(show(Quantity::kPoints, 0.018), "+1.8");
  EXPECT_EQ(show(Quantity::kGain, std::nan("")), "-");
}

}  // namespace
}  // namespace tigon::convergence
