// SPDX-License-Identifier: Apache-2.0
// Each predictor of the next action: trained on the training learners, scored on those held out.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "convergence/model_config.h"
#include "convergence/next_action/counts.h"
#include "convergence/next_action/lstm.h"
#include "convergence/next_action/report.h"
#include "convergence/next_action/sequences.h"

namespace tigon::convergence::next_action {

// A predictor's report and what it hit of each held-out learner; no hits when it was stopped or
// there is nothing to predict by.
struct Scored {
  PredictorReport report;
  std::vector<Hits> hits;
};

// Hears of a training and says whether to go on.
using Progress = std::function<bool(const TrainingReport&)>;

Scored predict_by_syllabus(const Sequences& sequences);
Scored predict_by_n_gram(const Sequences& sequences, const NGrams& n_grams, int order);
Scored predict_by_lstm(const Sequences& sequences, const LstmSettings& settings,
                       const Progress& progress);
// By the one that hits the most actions of the validation learners. Throws as transformer().
Scored predict_by_transformer(const Sequences& sequences, const std::vector<ModelConfig>& configs,
                              uint64_t seed, const Progress& progress);

// The order from 2 to `longest` that hits the most actions of the validation learners.
int best_order(const Sequences& sequences, const NGrams& n_grams, int longest);

// What nobody can expect to surpass: the likeliest action by the true law.
PredictorReport true_law(const Sequences& sequences);

// `a` less `b`, which hit actions of the same learners.
GapReport gap_between(const Scored& a, const Scored& b, Wanted wanted);

}  // namespace tigon::convergence::next_action
