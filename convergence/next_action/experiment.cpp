// SPDX-License-Identifier: Apache-2.0
// The next-action experiment after Tang, Peterson and Pardos (arXiv:1608.04789): who predicts best
// what a learner does next, from the syllabus to the transformer?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "convergence/experiments.h"
#include "convergence/next_action/logs.h"
#include "convergence/next_action/predictors.h"
#include "convergence/next_action/transformer.h"

namespace tigon::convergence {
namespace next_action {
namespace {

struct Sizes {
  Course course;         // that is made up
  int learners;          // of it
  int64_t most_actions;  // of the user's learners that are taken
  int64_t trained;       // actions that the LSTM trains on, of all epochs together
  LstmSettings lstm;
  std::vector<ModelConfig> transformers;  // of which one is chosen
};

// The default takes two cores two to two and a half minutes.
Sizes sizes_of(const ExperimentSettings& settings) {
  Sizes s{{}, 400, 400'000, 1'500'000, {}, {transformer_config(1)}};
  if (on_gpu()) {
    s = {{}, 2000, 2'000'000, 8'000'000, {}, large_transformer_configs(1)};
    s.lstm.shards = s.lstm.lanes;  // such a machine has cores for all, should cuDNN not run
    s.lstm.align = s.lstm.window;
  }
  if (settings.quick) {
    s.course.units = 40;
    s.learners = 300;
    s.most_actions = 40'000;
    s.trained = 250'000;
    s.transformers = {transformer_config(1)};
    s.transformers.front().batch = 4;
    s.transformers.front().steps = 200;
  }
  s.lstm.seed = settings.seed;
  for (ModelConfig& c : s.transformers) c.graph = settings.graph;
  return s;
}

// As long as there is time for, but not so often over the same actions that they are learnt by
// heart.
void fit_to(const Sequences& sequences, Sizes& sizes) {
  constexpr int64_t kMostEpochs = 20;
  const int64_t actions = actions_in(sequences.train);
  sizes.lstm.epochs = static_cast<int>(
      std::clamp<int64_t>((sizes.trained + actions / 2) / actions, 1, kMostEpochs));
  for (ModelConfig& c : sizes.transformers) {
    c.vocabulary = sequences.vocabulary;
    c.steps = static_cast<int>(
        std::min<int64_t>(c.steps, 1 + kMostEpochs * actions / c.tokens_per_step()));
  }
}

// The user's learners, as many of them as there is time for.
Sequences own_sequences(const ExperimentContext& context, int64_t most_actions) {
  constexpr size_t kFewestLearners = 20;
  constexpr uint64_t kStream = 6;
  const std::string& file = context.settings.actions;
  Log log = read_log(file);
  const size_t all = log.learners.size();
  if (all < kFewestLearners)
    throw ConvergeError(4, fmt::format("{}: {} learners with {} or more actions; {} are needed",
                                       file, all, kFewestActions, kFewestLearners));
  std::vector<Sequence> chosen;
  int64_t actions = 0;
  for (size_t i : random_order(all, context.settings.seed, kStream)) {
    actions += static_cast<int64_t>(log.learners[i].size());
    if (actions > most_actions && chosen.size() >= kFewestLearners) break;
    chosen.push_back(std::move(log.learners[i]));
  }
  context.note(
      fmt::format("{} of {} learners are taken; {} more had fewer than {} actions{}", chosen.size(),
                  all, log.left_out, kFewestActions,
                  log.daily ? "; times are days: the order inside a day is not real" : ""));
  Sequences s = split(std::move(chosen), log.vocabulary, context.settings.seed);
  s.source = fmt::format("{} ({})", file, log.layout);
  return s;
}

Sequences sequences_for(const ExperimentContext& context, const Sizes& sizes) {
  if (!context.settings.actions.empty()) return own_sequences(context, sizes.most_actions);
  return made_up(sizes.course, sizes.learners, context.settings.seed);
}

void announce(const ExperimentContext& context, const Sequences& s) {
  context.note(
      fmt::format("{}: {} resources, {} learners with {} actions to train on, {} to choose "
                  "by, {} with {} held out",
                  s.source, s.vocabulary, s.train.size(), actions_in(s.train), s.validation.size(),
                  s.held_out.size(), actions_in(s.held_out)));
}

// Those that are compared.
struct Results {
  Scored syllabus, n_gram, lstm, transformer;
};

class Run {
 public:
  explicit Run(const ExperimentContext& context)
      : context_(context), sizes_(sizes_of(context.settings)) {}

  // Nothing when it was stopped.
  std::optional<Results> results() {
    const Sequences s = sequences_for(context_, sizes_);
    fit_to(s, sizes_);
    announce(context_, s);
    const Progress progress = [&](const TrainingReport& report) {
      if (context_.observer.on_training) context_.observer.on_training(report);
      return !context_.stopped();
    };
    Results r;
    r.syllabus = told(predict_by_syllabus(s), kPublishedSyllabus);
    {
      const NGrams n_grams(s.train, kLongest);
      told(predict_by_n_gram(s, n_grams, 1));
      r.n_gram =
          told(predict_by_n_gram(s, n_grams, best_order(s, n_grams, kLongest)), kPublishedNGram);
    }
    r.lstm = told(predict_by_lstm(s, sizes_.lstm, progress), kPublishedRnn);
    if (context_.stopped()) return std::nullopt;
    r.transformer =
        told(predict_by_transformer(s, sizes_.transformers, context_.settings.seed, progress));
    if (context_.stopped()) return std::nullopt;
    if (!s.bound.empty()) tell(true_law(s));
    return r;
  }

  GapReport told_gap(const Scored& better, const Scored& worse, Wanted wanted) const {
    GapReport report = gap_between(better, worse, wanted);
    report.seed = context_.settings.seed;
    if (context_.observer.on_gap) context_.observer.on_gap(report);
    return report;
  }

 private:
  static constexpr int kLongest = 10;

  void tell(PredictorReport report) const {
    report.seed = context_.settings.seed;
    if (context_.observer.on_predictor) context_.observer.on_predictor(report);
  }

  // Tells of what was not stopped.
  Scored told(Scored s, double published = std::nan("")) const {
    s.report.published = published;
    if (!s.hits.empty() || !s.report.reason.empty()) tell(s.report);
    return s;
  }

  const ExperimentContext& context_;
  Sizes sizes_;
};

Finding share_of(const Scored& s) {
  Finding f{s.report.top1.value, s.report.predictor, s.report.data, s.report.reason};
  if (s.hits.empty()) return f;
  f.basis += fmt::format(", {:.1f} to {:.1f}%", 100 * s.report.top1.low, 100 * s.report.top1.high);
  f.reason = "published of other learners: the order compares, not the level";
  f.verdict = "other data";
  return f;
}

Finding gap_found(const GapReport& g, const std::string& data) {
  return {g.top1.value,
          fmt::format("{} - {}: {:+.1f} to {:+.1f} points, by learner", g.better, g.worse,
                      100 * g.top1.low, 100 * g.top1.high),
          data,
          "published of other learners; what must hold is that ours is wider than its interval",
          g.holds() ? "holds" : "does not hold"};
}

}  // namespace
}  // namespace next_action

std::vector<Finding> run_next_action(const ExperimentContext& context) {
  using namespace next_action;
  Run run(context);
  const std::optional<Results> r = run.results();
  if (!r) return {};
  const std::string& data = r->lstm.report.data;
  Finding above_syllabus{.reason = r->syllabus.report.reason};
  if (!r->syllabus.hits.empty())
    above_syllabus = gap_found(run.told_gap(r->n_gram, r->syllabus, Wanted::kWider), data);
  const Finding above_n_gram = gap_found(run.told_gap(r->lstm, r->n_gram, Wanted::kWider), data);
  run.told_gap(r->transformer, r->lstm, Wanted::kAtLeast);
  std::vector<Finding> all = {share_of(r->syllabus), share_of(r->n_gram), share_of(r->lstm),
                              above_syllabus, above_n_gram};
  for (Finding& f : all)
    if (context.settings.actions.empty()) f.from = kMadeUp;
  return all;
}

}  // namespace tigon::convergence
