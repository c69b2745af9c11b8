// SPDX-License-Identifier: Apache-2.0
// What must hold of the comparison itself: nothing is learnt from shuffled sequences, nobody
// surpasses the true law, and what the LSTM has over n-grams is what it knows of the learner.
#include <gtest/gtest.h>

#include <cmath>

#include "convergence/next_action/predictors.h"
#include "convergence/next_action/transformer.h"

namespace tigon::convergence::next_action {
namespace {

constexpr int kLongest = 10;

// Some hundred resources: enough to tell predictors apart within seconds.
Sequences small_course(int units, int learners, bool personas) {
  Course course;
  course.units = units;
  course.personas = personas;
  return made_up(course, learners, 1);
}

bool go_on(const TrainingReport&) { return true; }

Scored n_gram_of(const Sequences& s) {
  const NGrams n_grams(s.train, kLongest);
  return predict_by_n_gram(s, n_grams, best_order(s, n_grams, kLongest));
}

Scored lstm_of(const Sequences& s, int epochs) {
  LstmSettings settings;
  settings.epochs = epochs;
  return predict_by_lstm(s, settings, go_on);
}

std::vector<Scored> all_of(const Sequences& s) {
  ModelConfig config = transformer_config(s.vocabulary);
  config.sequence = 128;
  config.batch = 4;
  config.steps = 250;
  return {predict_by_syllabus(s), n_gram_of(s), lstm_of(s, 16),
          predict_by_transformer(s, {config}, 1, go_on)};
}

TEST(Validity, WithoutOrderNobodyBeatsTheUnigram) {
  const Sequences in_order = small_course(20, 300, true), s = shuffled(in_order, 1);
  const Scored unigram = predict_by_n_gram(s, NGrams(s.train, 1), 1);
  for (const Scored& p : all_of(s)) {
    const GapReport gap = gap_between(p, unigram, Wanted::kWider);
    EXPECT_LE(gap.top1.low, 0) << p.report.predictor << " is above the unigram";
    EXPECT_LT(gap.top1.value, 0.01) << p.report.predictor;
  }
}

TEST(Validity, NobodySurpassesTheTrueLaw) {
  const Sequences s = small_course(20, 300, true);
  const PredictorReport law = true_law(s);
  for (const Scored& p : all_of(s)) {
    EXPECT_LE(p.report.top1.low, law.top1.value) << p.report.predictor;
    EXPECT_LE(p.report.top10.low, law.top10.value) << p.report.predictor;
    // Those that learn come near.
    if (p.report.predictor == "syllabus") continue;
    EXPECT_GT(p.report.top1.value, law.top1.value - 0.15) << p.report.predictor;
  }
}

// Without personas the last few actions tell all that there is to know.
TEST(Validity, WithoutPersonasTheLstmHasNothingOverTheNGram) {
  const auto lead = [](bool personas) {
    const Sequences s = small_course(40, 600, personas);
    return gap_between(lstm_of(s, 10), n_gram_of(s), Wanted::kWider).top1;
  };
  const Estimate with = lead(true), without = lead(false);
  EXPECT_GT(with.low, 0);
  EXPECT_LE(without.low, 0);
  EXPECT_GT(with.value, without.value + 0.005);
}

TEST(Predictors, SayWhyThereIsNoNumber) {
  Sequences s = small_course(20, 20, true);
  s.syllabus.clear();
  const Scored p = predict_by_syllabus(s);
  EXPECT_TRUE(p.hits.empty());
  EXPECT_EQ(p.report.reason, "these data have no syllabus");
  EXPECT_NE(p.report.top1.value, p.report.top1.value);
}

TEST(Predictors, ChooseTheOrderByValidationLearners) {
  Sequences s;
  s.vocabulary = 6;
  s.train = {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 4, 2, 5}};
  // After 4 2 comes 5: a trigram knows it, whatever the held-out learners do.
  s.validation = {{0, 4, 2, 5}, {1, 2, 3}};
  s.held_out = {{0, 4, 2, 3}};
  EXPECT_EQ(best_order(s, NGrams(s.train, 4), 4), 3);
  s.validation = {{0, 1, 2, 3}};
  EXPECT_EQ(best_order(s, NGrams(s.train, 4), 4), 2);
}

TEST(Predictors, TransformerIsTheOneThatTheValidationLearnersChoose) {
  const Sequences s = small_course(10, 60, true);
  ModelConfig trained = transformer_config(s.vocabulary);
  trained.name = "trained";
  trained.sequence = 32;
  trained.steps = 60;
  ModelConfig untrained = trained;
  untrained.name = "untrained";
  untrained.steps = 1;
  const Scored best = predict_by_transformer(s, {trained}, 1, go_on);
  for (const auto& configs : {std::vector{trained, untrained}, std::vector{untrained, trained}}) {
    const Scored chosen = predict_by_transformer(s, configs, 1, go_on);
    EXPECT_EQ(chosen.report.top1.value, best.report.top1.value);
    EXPECT_EQ(chosen.report.reason.rfind("trained: chosen of 2", 0), 0u) << chosen.report.reason;
  }
}

TEST(Predictors, StopWhenAsked) {
  const Sequences s = small_course(20, 20, true);
  const Progress stop = [](const TrainingReport&) { return false; };
  EXPECT_TRUE(predict_by_lstm(s, {}, stop).hits.empty());
  ModelConfig config = transformer_config(s.vocabulary);
  config.sequence = 16;
  EXPECT_TRUE(predict_by_transformer(s, {config}, 1, stop).hits.empty());
}

TEST(Gaps, HoldWhenTheyAreWiderThanTheirIntervalOrReachZero) {
  const auto report = [](Estimate e, Wanted wanted) {
    GapReport r;
    r.top1 = e;
    r.wanted = wanted;
    return r.holds();
  };
  EXPECT_TRUE(report({0.05, 0.03, 0.07}, Wanted::kWider));
  EXPECT_FALSE(report({0.03, 0.01, 0.05}, Wanted::kWider));  // beyond chance, but narrower
  EXPECT_FALSE(report({-0.05, -0.06, -0.04}, Wanted::kWider));
  EXPECT_TRUE(report({-0.01, -0.03, 0.01}, Wanted::kAtLeast));
  EXPECT_FALSE(report({-0.02, -0.03, -0.01}, Wanted::kAtLeast));
  const double nan = std::nan("");
  EXPECT_FALSE(report({nan, nan, nan}, Wanted::kWider));
  EXPECT_FALSE(report({nan, nan, nan}, Wanted::kAtLeast));
}

}  // namespace
}  // namespace tigon::convergence::next_action
