// SPDX-License-Identifier: Apache-2.0
// Comparisons: naive against fused agree, results repeat.
#include "convergence/converge.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>

#include "convergence/compare.h"
#include "convergence/gradients.h"
#include "convergence/judge.h"
#include "convergence/micro.h"
#include "convergence/same_state.h"
#include "convergence/tests/faults.h"
#include "convergence/tests/small_runs.h"
#include "convergence/train.h"
#ifndef TIGON_CUDA
#include "kernels/simt/simt.h"
#endif

namespace tigon::convergence {
namespace {

TEST(Compare, NaiveAndFusedAgreeInF32) {
  const VerdictReport v = verdict_of(fused_ops<F32>());
  EXPECT_EQ(v.verdict, "passed") << v.reason;
  EXPECT_LT(v.largest_difference, 0.5 * v.budget);
  EXPECT_EQ(v.differences.size(), 40u);
  // On a GPU the GEMM's fixed workspace, 32 MiB, is more than all of this model.
  if (device_info().kind == "host") {
    EXPECT_LT(v.memory_ratio, 1.0);
  }
}

TEST(Compare, NaiveAndFusedAgreeInBF16) {
  const VerdictReport v = verdict_of(fused_ops<BF16>());
  EXPECT_EQ(v.verdict, "passed") << v.reason;
  ASSERT_EQ(v.equivalence.size(), 2u);
  for (const Equivalence& e : v.equivalence) {
    EXPECT_TRUE(e.shown()) << e.what;
    EXPECT_GT(e.margin, 0) << e.what;
    EXPECT_LT(e.lower, e.upper) << e.what;
    EXPECT_LE(e.noticed, e.margin) << e.what;
  }
  EXPECT_EQ(v.pairs.size(), 5u);
  EXPECT_EQ(v.pairs[4].seed, v.pairs[0].seed + 4);
}

// The losses fall from ln 512 = 6.24 towards the text's entropy.
TEST(Compare, ModelLearns) {
  const RunReport& naive = naive_runs<BF16>().front();
  EXPECT_NEAR(naive.loss.front(), std::log(512.0), 0.1);
  EXPECT_LT(naive.final_loss, 5.0);
  EXPECT_LT(naive.held_out_loss, 5.2);
}

#ifndef TIGON_CUDA
std::vector<double> losses_with_threads(unsigned threads) {
  const unsigned before = simt::config().os_threads;
  simt::config().os_threads = threads;
  const RunReport r = train<BF16>(small_config(), fused_ops<BF16>(), small_data(),
                                  settings_of(Side::kFused, 0, 10));
  simt::config().os_threads = before;
  return r.loss;
}
TEST(Train, LossesDoNotDependOnTheNumberOfThreads) {
  EXPECT_EQ(losses_with_threads(1), losses_with_threads(2));
}
#endif

TEST(Train, PlannedBytesAreThePeakOfTheFusedSide) {
  const RunReport r =
      train<F32>(small_config(), fused_ops<F32>(), small_data(), settings_of(Side::kFused, 0, 2));
  EXPECT_EQ(r.peak_bytes, r.planned_bytes);
  EXPECT_TRUE(r.complete);
}

TEST(Train, StopKeepsTheFinishedSteps) {
  std::atomic<bool> stop = false;
  TrainSettings s = settings_of(Side::kFused, 0, 20);
  s.stop = &stop;
  s.on_step = [&](const StepReport& step) { stop = step.step == 2; };
  const RunReport r = train<F32>(small_config(), fused_ops<F32>(), small_data(), s);
  EXPECT_EQ(r.loss.size(), 3u);
  EXPECT_FALSE(r.complete);
  EXPECT_TRUE(std::isnan(r.held_out_loss));
}

TEST(Train, RateWarmsUpThenFallsToATenth) {
  const ModelConfig c = small_config();
  EXPECT_NEAR(learning_rate(c, 0, 40), c.learning_rate / 5, 1e-12);
  EXPECT_NEAR(learning_rate(c, 5, 40), c.learning_rate, 1e-12);
  EXPECT_NEAR(learning_rate(c, 40, 40), c.learning_rate / 10, 1e-12);
  for (int t = 5; t < 40; ++t) EXPECT_LT(learning_rate(c, t + 1, 40), learning_rate(c, t, 40));
}

TEST(Train, NoiseIsOneUnitInTheLastPlace) {
  std::vector<float> w = {1.0f, -0.3f, 0.0f, 1000.0f};
  const std::vector<float> before = w;
  add_noise(w, DType::kBF16, 1, 0);
  EXPECT_EQ(w[2], 0.0f);
  for (size_t i : {0u, 1u, 3u}) {
    EXPECT_NE(w[i], before[i]);
    EXPECT_EQ(static_cast<float>(bf16(w[i])), w[i]);
    EXPECT_LE(std::abs(w[i] - before[i]), 1.5 * 2 * 0x1p-8 * std::abs(before[i]));
  }
}

// A gradient that is one percent too long, at every state, and none at first.
TEST(States, AOnePercentErrorIsOver) {
  const ModelConfig config = micro_config(false);
  const TokenData data = micro_data(config);
  for (const int step : {0, 5}) {
    std::vector<TrainingState> states;
    TrainSettings s = settings_of(Side::kNaive, 0, 5);
    s.states = {step};
    s.on_state = [&](int at, std::vector<float> w) { states.push_back({at, std::move(w)}); };
    train<BF16>(config, naive_ops<BF16>(), data, s);
    ASSERT_EQ(states.size(), 1u);
    const StateReference at = reference_at<BF16>(config, data, 1, states[0]);
    StateReport right, longer;
    compare_state<BF16>(config, fused_ops<BF16>(), at, right);
    EXPECT_EQ(right.verdict, "passed") << right.reason;
    compare_state<BF16>(config, ScaledOps<BF16>::loss_dx<1010>(), at, longer);
    EXPECT_EQ(longer.verdict, "incorrect_numerical");
    EXPECT_EQ(longer.first_step, step);
  }
}

template <class P>
void expect_gradients_within_budget(uint64_t seed) {
  GradientOracle oracle;
  const GradientReport r = check_gradients<P>(fused_ops<P>(), seed, oracle);
  EXPECT_EQ(r.verdict, "passed") << r.reason;
  EXPECT_EQ(r.parameters.size(), 3u * ParameterLayout(gradient_config(r.dtype)).parameters.size());
  double worst = 0;
  for (const ParameterError& p : r.parameters) worst = std::max(worst, p.error / p.budget);
  EXPECT_LT(worst, 0.7);
  EXPECT_GT(worst, 0.02) << "the budget says nothing";
}
TEST(Gradients, EveryParameterIsWithinItsBudget) {
  for (uint64_t seed : {1, 2}) {
    expect_gradients_within_budget<F32>(seed);
    expect_gradients_within_budget<BF16>(seed);
  }
}

TEST(Gradients, AFaultIsFoundAtItsFirstStep) {
  GradientOracle oracle;
  const GradientReport f = check_gradients<F32>(Faults<F32>::off_by_one_mean(), 1, oracle);
  EXPECT_EQ(f.verdict, "incorrect_numerical");
  EXPECT_EQ(f.first_step, 1);
}

RunReport made_up_run(DType type, double offset) {
  RunReport r;
  r.dtype = type;
  r.vocabulary = 512;
  r.tokens_per_step = 128;
  r.complete = true;
  for (int t = 0; t < 20; ++t) r.loss.push_back(6.0 - 0.1 * t + offset * (t % 2 ? 1 : -1));
  r.held_out_loss = 4.0 + offset;
  return r;
}

// Five times the same pair, or one of f32.
VerdictReport judged_pair(const RunReport& naive, const RunReport& fused, const RunReport& twin,
                          const RunReport* other = nullptr) {
  Trial t;
  const bool f32 = naive.dtype == DType::kF32;
  for (int i = 0; i < (f32 ? kF32Pairs : kBF16Pairs); ++i) t.pairs.push_back({&naive, &fused});
  if (other != nullptr) t.pairs.back().fused = other;
  if (f32) t.twin = &twin;
  return judge(t);
}

TEST(Judge, FailsClosed) {
  for (DType type : {DType::kF32, DType::kBF16}) {
    const RunReport naive = made_up_run(type, 0), close = made_up_run(type, 1e-6);
    const RunReport twin = made_up_run(type, -1e-6);
    // Whichever of the pairs it is.
    const auto verdict_of = [&](const RunReport& fused) {
      return judged_pair(naive, type == DType::kF32 ? fused : close, twin, &fused).verdict;
    };
    EXPECT_EQ(verdict_of(close), "passed");
    RunReport bad = close;
    bad.loss[15] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(verdict_of(bad), "nonfinite");
    bad = close;
    bad.held_out_loss = 4.1;
    EXPECT_EQ(verdict_of(bad), "incorrect_numerical");
    bad = close;
    bad.loss[19] += 0.1;
    EXPECT_EQ(verdict_of(bad), "incorrect_numerical");
    bad = close;
    bad.complete = false;
    EXPECT_EQ(verdict_of(bad), "not_run");
    EXPECT_EQ(judge({{{&naive, &close}}, type == DType::kF32 ? nullptr : &twin}).verdict,
              "not_run");
  }
}

// Pairs that spread widely, each within the margin, show nothing.
TEST(Judge, AWideSpreadIsNoEquivalence) {
  const RunReport naive = made_up_run(DType::kBF16, 0);
  RunReport above = naive, below = naive;
  for (double& x : above.loss) x *= 1.004;
  for (double& x : below.loss) x *= 0.996;
  const Pair high{&naive, &above}, low{&naive, &below};
  const VerdictReport v = judge({{high, high, high, high, low}});
  EXPECT_EQ(v.verdict, "incorrect_numerical");
  EXPECT_NE(v.reason.find("not shown to be equivalent"), std::string::npos) << v.reason;
}

// A spike is named, and no difference is judged behind it.
TEST(Judge, ASpikedPairIsNoEvidence) {
  RunReport naive = made_up_run(DType::kBF16, 0);
  naive.grad_norm.assign(naive.loss.size(), 1.0);
  EXPECT_EQ(first_spike(naive), -1);
  naive.loss[12] *= 1.15;
  EXPECT_EQ(first_spike(naive), -1) << "harder text";
  naive.grad_norm[12] = 4.0;
  EXPECT_EQ(first_spike(naive), 12);
  const VerdictReport v = judged_pair(naive, naive, naive);
  EXPECT_EQ(v.verdict, "runtime_error");
  EXPECT_NE(v.reason.find("spikes at step 13"), std::string::npos) << v.reason;
}

TEST(Converge, RefusesWhatItCannotTrain) {
  const auto code_of = [](ConvergeRequest r) {
    try {
      converge(r);
    } catch (const ConvergeError& e) {
      return e.exit_code;
    }
    return 0;
  };
  ConvergeRequest r;
  r.config = "huge";
  EXPECT_EQ(code_of(r), 2);
  r = {};
  r.data = "/nonexistent/text";
  EXPECT_EQ(code_of(r), 2);
  r = {};
  r.dtypes = {DType::kF16};
  EXPECT_EQ(code_of(r), 2);
  r = {};
  r.steps = -1;
  EXPECT_EQ(code_of(r), 2);
  r = {};
  r.batch = 0;
  EXPECT_EQ(code_of(r), 2);
}

// Names the naive run of one pair that spiked, and runs the pair again at half the rate.
TEST(Converge, ASpikedPairIsRunAgainAtALowerRate) {
  ModelConfig config = small_config();
  config.steps = 12;
  config.learning_rate = 3;
  std::vector<std::string> notes;
  std::atomic<bool> stop = false;
  ConvergeObserver observer;
  observer.on_note = [&](const std::string& note) { notes.push_back(note); };
  observer.on_run = [&](const RunReport& r) { stop = r.learning_rate == 1.5; };
  ConvergeResult result;
  compare_curves<BF16>({config, small_data(), "", 1, observer, &stop}, naive_ops<BF16>(),
                       fused_ops<BF16>(), result);
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes[0].find("the naive run of seed 1 spikes at step"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("at a rate of 1.5"), std::string::npos) << notes[0];
  EXPECT_EQ(result.runs[1].side, Side::kNaive);
  EXPECT_EQ(result.runs[1].learning_rate, 1.5);
}

TEST(Converge, BothSidesAreRunAgainAndHaveTheSameBits) {
  ModelConfig config = small_config();
  config.steps = 4;
  const ConvergeObserver silent;
  ConvergeResult result;
  compare<F32>({config, small_data(), "", 1, silent}, naive_ops<F32>(), fused_ops<F32>(), result);
  ASSERT_EQ(result.repeats.size(), 2u);
  for (const RepeatReport& r : result.repeats) EXPECT_EQ(r.verdict, "passed") << r.reason;
  ASSERT_EQ(result.states.size(), 1u);
  EXPECT_EQ(result.states[0].verdict, "passed") << result.states[0].reason;
  EXPECT_EQ(result.states[0].reference, "double");
}

TEST(Converge, ItTakesTheStepsThatWereSaid) {
  ConvergeRequest request;
  request.steps = 2;
  request.sequence = 16;
  request.batch = 1;
  int steps = 0;
  ConvergeObserver observer;
  observer.on_step = [&](const StepReport&) { ++steps; };
  const int said = steps_of(request);
  ConvergeResult result;
  try {
    result = converge(request, observer);
  } catch (const ConvergeError& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_EQ(steps, said);
  request.finished = {result.runs[0]};
  EXPECT_EQ(steps_of(request), said - 2);
  request.finished = result.runs;
  EXPECT_EQ(steps_of(request), 0);
}

TEST(Converge, InterruptionGives130AndKeepsRuns) {
  ConvergeRequest request;
  request.steps = 5;
  request.dtypes = {DType::kBF16};
  std::atomic<bool> stop = false;
  ConvergeObserver observer;
  observer.on_step = [&](const StepReport& s) { stop = s.side == Side::kFused && s.step == 1; };
  ConvergeResult result;
  try {
    result = converge(request, observer, &stop);
  } catch (const ConvergeError& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_EQ(result.exit_code(), 130);
  ASSERT_EQ(result.runs.size(), 2u);
  EXPECT_EQ(result.runs[1].loss.size(), 2u);
}

}  // namespace
}  // namespace tigon::convergence
