// SPDX-License-Identifier: Apache-2.0
// A property's calls: of the implementation that a case names, on this executor.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/judging/oracle.h"
#include "harness/run/memory/device_case.h"
#include "harness/spec/experiment.h"

namespace tigon {

class CaseExperiment : public Experiment {
 public:
  // `problem` must outlive it.
  explicit CaseExperiment(const Problem& problem);

  HostTensors run(const Call& call) override;
  std::map<std::string, std::vector<double>> budgets(const Call& call) override;
  void judge(const Call& call, const HostTensors& outputs) override;
  Call generated(const Call& call, uint64_t seed) override;
  Call with_saved(const Call& call, const OptionSet& forward_options) override;

  std::vector<HostTensors> replay(const std::vector<Call>& calls) override;
  std::vector<HostTensors> run_on_streams(const std::vector<Call>& calls, int times) override;
  bool has_streams() const override;
  bool has_far_memory() const override;

  std::vector<OptionSet> option_sets() const override;
  Bound placed(const Call& call) const override;
  Status ask(const Call& call, const Bound& bound) const override;

  const OpSpec& op() const override { return *problem_.op; }
  const Pass& pass() const override { return *problem_.pass; }
  double option(const Call& call, const std::string& name) const override;
  int dimension_of(const std::string& tensor, const std::string& axis) const override;

 private:
  // What the oracle says about a call, remembered while its numbers are the same.
  struct Judged {
    Call call;
    Problem problem;
    std::map<std::string, Expected> expected;
  };
  const Judged& judged_of(const Call& call);
  Case case_of(const Call& call) const;
  Problem problem_of(const Call& call) const;
  std::vector<Problem> problems_of(const std::vector<Call>& calls) const;

  const Problem& problem_;
  std::optional<Judged> judged_;
};

// The outputs that the bytes are of, as values.
HostTensors outputs_of(const Problem& problem, const OutputBytes& bytes);

// Where the call's tensors lie.
inline Layout layout_of(const Call& call) { return {call.shift, call.gap, call.memory_of}; }

}  // namespace tigon
