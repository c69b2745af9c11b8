// SPDX-License-Identifier: Apache-2.0
// What the next-action experiment found, as its records say it.
#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include "convergence/next_action/accuracy.h"

namespace tigon::convergence::next_action {

// Top-1 of Tang, Peterson and Pardos (arXiv:1608.04789), of the learners of a course on statistics.
inline constexpr double kPublishedSyllabus = 0.23, kPublishedNGram = 0.704, kPublishedRnn = 0.722;

// One predictor on the held-out learners.
struct PredictorReport {
  std::string predictor;
  std::string data;
  Estimate top1, top10;  // not a number where there is none
  double published =     // top-1, on other data
      std::numeric_limits<double>::quiet_NaN();
  int64_t parameters = 0;  // weights; of an n-gram the pairs that it counted
  double seconds_s = 0;    // training and scoring
  uint64_t seed = 0;
  std::string reason;  // why there is no number, or what else there is to know
};

// How far a predictor's training is.
struct TrainingReport {
  std::string predictor;
  int done, of;  // epochs or some steps at a time; the first is 1
  double loss;   // their mean, in nats
};

// What a gap must be: wider than its interval, or not below zero by all of its interval.
enum class Wanted { kWider, kAtLeast };
constexpr const char* name_of(Wanted wanted) {
  return wanted == Wanted::kWider ? "wider than its interval" : "interval reaches zero";
}

// How much larger a share of the actions of the same learners one predictor hits than another.
struct GapReport {
  std::string better, worse;
  Estimate top1;
  Wanted wanted = Wanted::kWider;
  uint64_t seed = 0;

  bool holds() const {
    return wanted == Wanted::kWider ? top1.value > top1.width() : top1.high >= 0;
  }
};

}  // namespace tigon::convergence::next_action
