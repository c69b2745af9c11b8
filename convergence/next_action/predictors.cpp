// SPDX-License-Identifier: Apache-2.0
// Predictors and the time that they take.
#include "convergence/next_action/predictors.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "convergence/experiment.h"
#include "convergence/next_action/cudnn_lstm.h"
#include "convergence/next_action/transformer.h"

namespace tigon::convergence::next_action {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr Estimate kNoNumber{kNone, kNone, kNone};

PredictorReport named(const Sequences& sequences, const std::string& name) {
  PredictorReport report;
  report.predictor = name;
  report.data = sequences.source;
  report.top1 = report.top10 = kNoNumber;
  return report;
}

// Between none and all of the actions.
Estimate share(const std::vector<Hits>& hits, int64_t Hits::*which) {
  const Estimate e = accuracy(hits, which);
  return {e.value, std::max(0.0, e.low), std::min(1.0, e.high)};
}

void fill(PredictorReport& report, const std::vector<Hits>& hits) {
  report.top1 = share(hits, &Hits::top1);
  report.top10 = share(hits, &Hits::top10);
}

// `work` gives the hits and may fill in the report.
template <class F>
Scored scored(const Sequences& sequences, const std::string& name, F&& work) {
  const Clock::time_point start = Clock::now();
  Scored s{named(sequences, name), {}};
  s.hits = work(s.report);
  s.report.seconds_s = std::chrono::duration<double>(Clock::now() - start).count();
  if (!s.hits.empty()) fill(s.report, s.hits);
  return s;
}

struct ChosenLstm {
  std::unique_ptr<LstmPredictor> network;
  std::string why = {};  // empty without a choice
};

// The largest difference over the largest of what is wanted.
double distance(const Floats& got, const Floats& want) {
  float difference = 0, largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(got[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(got[i] - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  return static_cast<double>(difference) / static_cast<double>(largest);
}

// cuDNN's on a GPU, if its first gradient is that of the plain one: a wrong gate order or place of
// a weight would train, too, only worse.
ChosenLstm choose_lstm(const Sequences& s, const LstmSettings& settings) {
  constexpr double kMost = 1e-4;
  auto plain = std::make_unique<Lstm>(s.vocabulary, settings);
  try {
    auto other = cudnn_lstm(s.vocabulary, settings);
    if (other == nullptr) return {std::move(plain)};
    Floats want, got;
    plain->gradient(s.train, want);
    other->gradient(s.train, got);
    const double off = distance(got, want);
    if (off <= kMost)
      return {std::move(other), fmt::format("by cuDNN; its first gradient is within {:.1g} of the "
                                            "processor's",
                                            off)};
    return {std::move(plain),
            fmt::format("on the processor: cuDNN's first gradient is off by {:.1g}", off)};
  } catch (const ConvergeError& e) {
    return {std::move(plain), fmt::format("on the processor: {}", e.what())};
  }
}

}  // namespace

Scored predict_by_syllabus(const Sequences& s) {
  return scored(s, "syllabus", [&](PredictorReport& report) {
    if (!s.syllabus.empty()) return score_syllabus(s.syllabus, s.held_out);
    report.reason = "these data have no syllabus";
    return std::vector<Hits>{};
  });
}

Scored predict_by_n_gram(const Sequences& s, const NGrams& n_grams, int order) {
  return scored(s, order == 1 ? "unigram" : fmt::format("{}-gram", order),
                [&](PredictorReport& report) {
                  report.parameters = n_grams.entries(order);
                  return n_grams.score(s.held_out, order);
                });
}

Scored predict_by_lstm(const Sequences& s, const LstmSettings& settings, const Progress& progress) {
  return scored(s, "LSTM", [&](PredictorReport& report) {
    const ChosenLstm lstm = choose_lstm(s, settings);
    report.parameters = lstm.network->parameters();
    bool go_on = true;
    lstm.network->train(s.train, [&](int epoch, double loss) {
      return go_on = progress({report.predictor, epoch + 1, settings.epochs, loss});
    });
    if (!go_on) return std::vector<Hits>{};
    report.reason = lstm.why;
    return lstm.network->score(s.held_out);
  });
}

namespace {

TransformerResult trained_transformer(const Sequences& s, const ModelConfig& config, uint64_t seed,
                                      const Progress& progress) {
  constexpr int kEvery = 20;  // steps
  double sum = 0;
  return transformer(s, config, seed, [&](int step, double loss) {
    sum += loss;
    if ((step + 1) % kEvery != 0) return true;
    return progress({"transformer", (step + 1) / kEvery, config.steps / kEvery,
                     std::exchange(sum, 0.0) / kEvery});
  });
}

}  // namespace

Scored predict_by_transformer(const Sequences& s, const std::vector<ModelConfig>& configs,
                              uint64_t seed, const Progress& progress) {
  return scored(s, "transformer", [&](PredictorReport& report) {
    std::vector<Hits> chosen;
    double most = -1;
    for (const ModelConfig& config : configs) {
      TransformerResult result = trained_transformer(s, config, seed, progress);
      if (result.hits.empty()) return std::vector<Hits>{};  // stopped
      const double hit = accuracy(result.validation, &Hits::top1).value;
      if (hit <= most) continue;
      most = hit;
      chosen = std::move(result.hits);
      report.parameters = result.parameters;
      report.reason =
          configs.size() > 1
              ? fmt::format("{}: chosen of {} by {:.2f}% of the validation learners' actions",
                            config.name, configs.size(), 100 * hit)
              : "";
      if (on_gpu())
        report.reason +=
            fmt::format("{}steps: {}", report.reason.empty() ? "" : "; ", result.launches);
    }
    return chosen;
  });
}

int best_order(const Sequences& s, const NGrams& n_grams, int longest) {
  int best = 2;
  double most = -1;
  for (int order = 2; order <= longest; ++order) {
    const double hit = accuracy(n_grams.score(s.validation, order), &Hits::top1).value;
    if (hit > most) {
      most = hit;
      best = order;
    }
  }
  return best;
}

PredictorReport true_law(const Sequences& s) {
  PredictorReport report = named(s, "true law");
  fill(report, s.bound);
  report.reason = "no predictor can expect more";
  return report;
}

GapReport gap_between(const Scored& a, const Scored& b, Wanted wanted) {
  GapReport report;
  report.better = a.report.predictor;
  report.worse = b.report.predictor;
  report.top1 = gap(a.hits, b.hits, &Hits::top1);
  report.wanted = wanted;
  return report;
}

}  // namespace tigon::convergence::next_action
