// SPDX-License-Identifier: Apache-2.0
// cuDNN's LSTM against the plain one on a GPU, which another test holds against differences.
#include "convergence/next_action/cudnn_lstm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "convergence/converge.h"
#include "convergence/text_data.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence::next_action {
namespace {

// Why cuDNN's LSTM cannot run here, or nothing.
std::string obstacle() {
  try {
    return device_info().kind == "cuda" ? "" : "not a GPU build";
  } catch (const DeviceError& e) {
    return e.what();
  }
}

// Of several lengths, some longer than a window.
std::vector<Sequence> random_learners(size_t count, int32_t vocabulary) {
  std::vector<Sequence> learners;
  for (uint64_t i = 0; i < count; ++i) {
    Sequence s;
    for (uint64_t t = 0; t < 5 + 7 * i % 40; ++t)
      s.push_back(static_cast<int32_t>(random_bits(9, i, t) % static_cast<uint64_t>(vocabulary)));
    learners.push_back(s);
  }
  return learners;
}

LstmSettings settings_of(int layers, int hidden) {
  LstmSettings s;
  s.layers = layers;
  s.embedding = 32;
  s.hidden = hidden;
  s.lanes = 8;
  s.window = s.align = 16;
  s.epochs = 3;
  return s;
}

class CudnnLstm : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(CudnnLstm, HasTheGradientOfThePlainOne) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const auto [layers, hidden] = GetParam();
  const LstmSettings s = settings_of(layers, hidden);
  constexpr int32_t kVocabulary = 101;  // no multiple of 8
  const std::vector<Sequence> learners = random_learners(30, kVocabulary);
  Lstm plain(kVocabulary, s);
  const auto other = cudnn_lstm(kVocabulary, s);
  ASSERT_EQ(other->parameters(), plain.parameters());
  Floats want, got;
  const double loss = plain.gradient(learners, want);
  EXPECT_NEAR(other->gradient(learners, got), loss, 1e-5 * loss);
  double largest = 0;
  for (float g : want) largest = std::max(largest, std::abs(static_cast<double>(g)));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-5 * largest + 1e-4 * std::abs(want[i])) << i;
}

// Rounding alone parts them: three epochs over windows that carry their states.
TEST_P(CudnnLstm, TrainsAndScoresLikeThePlainOne) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const auto [layers, hidden] = GetParam();
  const LstmSettings s = settings_of(layers, hidden);
  const std::vector<Sequence> learners = random_learners(60, 40);
  const auto trained = [&](LstmPredictor& lstm) {
    std::vector<double> losses;
    lstm.train(learners, [&](int, double loss) { return losses.push_back(loss), true; });
    int64_t top10 = 0;
    for (const Hits& h : lstm.score(learners)) top10 += h.top10;
    return std::pair(losses, top10);
  };
  Lstm plain(40, s);
  const auto other = cudnn_lstm(40, s);
  const auto [want, want_hits] = trained(plain);
  const auto [got, got_hits] = trained(*other);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3 * want[i]) << i;
  EXPECT_LT(got.back(), got.front());
  EXPECT_NEAR(static_cast<double>(got_hits), static_cast<double>(want_hits),
              0.02 * static_cast<double>(want_hits) + 2);
}
INSTANTIATE_TEST_SUITE_P(LayersAndHidden, CudnnLstm,
                         testing::Values(std::pair{1, 64}, std::pair{2, 64}, std::pair{1, 256}));

TEST(CudnnLstmRequest, NeedsLearnersThatBeginWithAWindow) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_THROW(cudnn_lstm(7, LstmSettings{}), ConvergeError);
}

}  // namespace
}  // namespace tigon::convergence::next_action
