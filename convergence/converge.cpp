// SPDX-License-Identifier: Apache-2.0
// From a request to runs and verdicts.
#include "convergence/converge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convergence/compare.h"
#include "convergence/gradients.h"
#include "convergence/pretrained.h"

namespace tigon::convergence {
ModelConfig config_of(const ConvergeRequest& r) {
  std::optional<ModelConfig> found = find_config(r.config);
  if (!found)
    throw ConvergeError(
        2, fmt::format("no model '{}': there are {}", r.config, fmt::join(config_names(), ", ")));
  ModelConfig c = *found;
  if (r.sequence) c.sequence = *r.sequence;
  if (!r.load.empty()) c = pretrained_config(r.load, c);
  if (r.quick) c.steps = c.quick_steps;
  if (r.steps != 0) c.steps = r.steps;
  if (r.tied) c.tied = *r.tied;
  if (r.batch) c.batch = *r.batch;
  if (r.vocabulary) c.vocabulary = *r.vocabulary;
  if (r.accumulate) c.accumulate = *r.accumulate;
  if (r.medusa) c.medusa = *r.medusa;
  if (r.rate) c.learning_rate = *r.rate;
  c.frozen = c.frozen || r.frozen;
  c.recompute = c.recompute || r.recompute;
  c.graph = c.graph && r.graph;
  if (!r.dtypes.empty()) c.dtypes = r.dtypes;
  if (const std::string problem = problem_with(c); !problem.empty())
    throw ConvergeError(2, fmt::format("model {}: {}", c.name, problem));
  if (const std::string problem = problem_with_export(c); !r.exports.empty() && !problem.empty())
    throw ConvergeError(2, fmt::format("model {} cannot be exported: {}", c.name, problem));
  return c;
}

namespace {

template <class P>
Ops<P> asked_ops(const ConvergeRequest& r) {
  return r.fused.empty() ? fused_ops<P>() : mixed_ops<P>(r.fused);
}

bool stopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

template <class P>
void check_first_steps(const Ops<P>& fused, uint64_t seed, const ConvergeObserver& observer,
                       ConvergeResult& result) {
  GradientOracle oracle;
  result.gradients.push_back(check_gradients<P>(fused, seed, oracle));
  if (observer.on_gradients) observer.on_gradients(result.gradients.back());
}

}  // namespace

int steps_of(const ConvergeRequest& request) {
  const ModelConfig config = config_of(request);
  int steps = 0;
  for (const DType dtype : config.dtypes) steps += steps_to_train(config, dtype, request.finished);
  return steps;
}

ConvergeResult converge(const ConvergeRequest& request, const ConvergeObserver& observer,
                        const std::atomic<bool>* stop) {
  const ModelConfig config = config_of(request);
  const Corpus corpus = read_corpus(request.data);
  const TokenData data(corpus, config.vocabulary, config.sequence,
                       {request.tokenizer, request.padded, request.token_cache});
  observer.note(
      fmt::format("{}: {:.2f} million parameters, {} steps of {} tokens; {}: {} file(s), "
                  "{} token ids, {} training and {} held-out tokens",
                  config.name, static_cast<double>(config.parameters()) * 1e-6, config.steps,
                  config.tokens_per_step(), corpus.source, corpus.files, data.entries(),
                  data.train_tokens(), data.held_out_tokens()));
  const std::vector<float> weights =
      request.load.empty() ? std::vector<float>{} : pretrained_weights(request.load, config);
  const Comparison comparison{
      config,           data,    corpus.source,       request.seed,
      observer,         stop,    request.checkpoints, request.checkpoint_every,
      request.finished, weights, request.exports,     request.quick};
  ConvergeResult result;
  for (DType type : config.dtypes) {
    if (stopped(stop)) result.interrupted = true;
    if (result.interrupted) break;
    if (type == DType::kF32) {
      check_first_steps<F32>(asked_ops<F32>(request), request.seed, observer, result);
      compare<F32>(comparison, naive_ops<F32>(), asked_ops<F32>(request), result);
    } else {
      check_first_steps<BF16>(asked_ops<BF16>(request), request.seed, observer, result);
      compare<BF16>(comparison, naive_ops<BF16>(), asked_ops<BF16>(request), result);
    }
  }
  return result;
}

int ConvergeResult::exit_code() const {
  if (interrupted) return 130;
  const auto passed = [](const auto& reports) {
    return std::all_of(reports.begin(), reports.end(),
                       [](const auto& r) { return r.verdict == "passed"; });
  };
  const auto not_failed = [](const auto& reports) {
    return std::all_of(reports.begin(), reports.end(), [](const auto& r) {
      return r.verdict == "passed" || r.verdict == "not_run";
    });
  };
  return passed(verdicts) && passed(gradients) && not_failed(states) && not_failed(repeats) &&
                 !verdicts.empty()
             ? 0
             : 1;
}

}  // namespace tigon::convergence
