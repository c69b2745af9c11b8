// SPDX-License-Identifier: Apache-2.0
// Every part of the evidence, with the naive side kept.
#include "convergence/evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "convergence/compare.h"
#include "convergence/micro.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

const ConvergeObserver kSilent;

PartReport part_of(const char* part, const GradientReport& r) {
  return {fmt::format("{} {}", part, name_of(r.dtype)), r.verdict, r.first_step, r.reason};
}

PartReport part_of(const char* part, const StateReport& r) {
  return {fmt::format("{} {}", part, name_of(r.dtype)), r.verdict, r.first_step + 1, r.reason};
}

// A difference that shows at no step shows at the end.
PartReport part_of(const char* part, const VerdictReport& r) {
  const int end = r.verdict == "passed" ? 0 : static_cast<int>(r.differences.size());
  return {fmt::format("{} {}", part, name_of(r.dtype)), r.verdict,
          r.first_step_over >= 0 ? r.first_step_over + 1 : end, r.reason};
}

}  // namespace

EvidenceModel micro_evidence() {
  ModelConfig c = micro_config(false);
  c.steps = 5;
  c.held_out_batches = 1;
  c.graph = false;
  return {c, std::make_shared<TokenData>(micro_data(c))};
}

ModelConfig evidence_config(const ConvergeRequest& request) {
  ModelConfig c = config_of(request);
  if (request.steps == 0) c.steps = c.quick_steps;
  c.graph = false;
  // The last chunk of the head is shorter in either dtype: it has faults of its own.
  c.logits_bytes = c.tokens_per_pass() * 3 / 32 * c.vocabulary * 4;
  return c;
}

EvidenceModel evidence_of(const ConvergeRequest& request) {
  const ModelConfig c = evidence_config(request);
  return {c, std::make_shared<TokenData>(
                 read_corpus(request.data), c.vocabulary, c.sequence,
                 DataOptions{request.tokenizer, request.padded, request.token_cache})};
}

// Of one dtype.
template <class P>
struct Evidence::Of {
  Of(const EvidenceModel& model, uint64_t seed) : model(model), seed(seed) {
    states.dtype = dtype_of<typename P::Elem>;
    states.config = model.config.name;
    states.reference = reference_of(model.config, states.dtype, states.reason);
    states.verdict = "not_run";
    TrainSettings s;
    s.seed = seed;
    s.steps = s.horizon = model.config.steps;
    if (!states.reference.empty()) s.states = state_steps(model.config, s.steps);
    s.on_state = [&](int step, std::vector<float> weights) {
      references.push_back(
          reference_at<P>(model.config, *model.data, seed, {step, std::move(weights)}));
    };
    train<P>(model.config, naive_ops<P>(), *model.data, s);
  }

  Comparison comparison() const {
    Comparison c{model.config, *model.data, "", seed, kSilent};
    c.finished = naive;
    return c;
  }

  PartReport oracle_part(const Ops<P>& fused) {
    return part_of("oracle", check_gradients<P>(fused, seed, oracle));
  }

  PartReport states_part(const Ops<P>& fused) const {
    StateReport report = states;
    for (const StateReference& at : references) compare_state<P>(model.config, fused, at, report);
    return part_of("states", report);
  }

  // The first call trains the naive side, too.
  PartReport curves_part(const Ops<P>& fused) {
    ConvergeResult result;
    compare_curves<P>(comparison(), naive_ops<P>(), fused, result);
    if (naive.empty())
      std::copy_if(result.runs.begin(), result.runs.end(), std::back_inserter(naive),
                   [](const RunReport& r) { return r.side != Side::kFused; });
    return part_of("curves", result.verdicts.at(0));
  }

  const EvidenceModel& model;
  uint64_t seed;
  GradientOracle oracle;
  StateReport states;
  std::vector<StateReference> references;
  std::vector<RunReport> naive;
};

Evidence::Evidence(const EvidenceModel& model, uint64_t seed)
    : model_(model),
      seed_(seed),
      f32_(std::make_unique<Of<F32>>(model_, seed_)),
      bf16_(std::make_unique<Of<BF16>>(model_, seed_)) {
  of(naive_ops<F32>(), naive_ops<BF16>());  // trains the naive side
}

Evidence::~Evidence() = default;

std::vector<PartReport> Evidence::of(const Ops<F32>& f32, const Ops<BF16>& bf16) {
  return {f32_->oracle_part(f32),   bf16_->oracle_part(bf16), f32_->states_part(f32),
          bf16_->states_part(bf16), f32_->curves_part(f32),   bf16_->curves_part(bf16)};
}

}  // namespace tigon::convergence
