// SPDX-License-Identifier: Apache-2.0
// The parts of a training's evidence, each on its own: which of them notices what.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "convergence/gradients.h"
#include "convergence/ops.h"
#include "convergence/same_state.h"
#include "convergence/text_data.h"

namespace tigon::convergence {

// What is trained. Without a graph: faults are planted between launches.
struct EvidenceModel {
  ModelConfig config;
  std::shared_ptr<const TokenData> data;
};

// Five steps of the micro model, in well under a second.
EvidenceModel micro_evidence();
// A preset on its own text, and as far as its short run unless steps were asked for. Both throw
// ConvergeError(2).
ModelConfig evidence_config(const ConvergeRequest& request);
EvidenceModel evidence_of(const ConvergeRequest& request);

struct PartReport {
  std::string part;     // "oracle f32", "states bf16", "curves bf16", ...
  std::string verdict;  // as of the report that it is from
  int step = 0;         // from 1, at which it shows; 0: none
  std::string reason;
  bool failed() const { return verdict != "passed" && verdict != "not_run"; }
};

// The naive side and the references are computed once, with the kernels as they are then.
class Evidence {
 public:
  Evidence(const EvidenceModel& model, uint64_t seed);
  ~Evidence();

  // The gradients of the first steps against the oracle, those from the same states of a training,
  // and the loss curves; each in f32 and bf16.
  std::vector<PartReport> of(const Ops<F32>& f32, const Ops<BF16>& bf16);

 private:
  template <class P>
  struct Of;
  EvidenceModel model_;
  uint64_t seed_;
  std::unique_ptr<Of<F32>> f32_;
  std::unique_ptr<Of<BF16>> bf16_;
};

}  // namespace tigon::convergence
