// SPDX-License-Identifier: Apache-2.0
// What a property may do: call the implementation that is judged with other inputs, options, sizes
// and layouts, and say how the outputs must be related. harness/run/judging/properties.cpp carries
// it out.
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

// A tensor on the host, row-major; every value is one that its type can hold.
struct HostTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<double> values;
  bool operator==(const HostTensor&) const = default;
};
using HostTensors = std::map<std::string, HostTensor>;

// One call of the implementation.
struct Call {
  std::string pass;
  DType dtype = DType::kF32;  // the policy
  std::map<std::string, int64_t> axes;
  OptionSet options;
  HostTensors inputs;
  int order = 0;  // in which the executor runs threads, where that can be chosen: 0 to 3
  // By tensor: elements off its alignment, elements between its rows, and the input whose memory an
  // output takes.
  std::map<std::string, int> shift = {}, gap = {};
  std::map<std::string, std::string> memory_of = {};
  int skew = 0;  // of the case: elements by which each tensor is off more than the one before it
};

// The promise is broken: one line that names an element and both values.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The same, for a result that differs from call to call.
struct Nondeterminism : Violation {
  using Violation::Violation;
};
// It cannot be checked here, with the reason.
struct NotApplicable : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The implementation refused the call, with its reason.
struct Refusal : std::runtime_error {
  Refusal(const std::string& reason, bool is_unsupported)
      : std::runtime_error(reason), unsupported(is_unsupported) {}
  bool unsupported;  // else the call was invalid
};

class Experiment {
 public:
  virtual ~Experiment() = default;

  // The case itself.
  const Call& base() const { return base_; }

  // Makes the call and returns its outputs. Throws Refusal; other faults end the case.
  virtual HostTensors run(const Call& call) = 0;
  // run(base()), once.
  const HostTensors& base_outputs();

  // What a call's outputs may be off by: the budget of each element, from the oracle.
  virtual std::map<std::string, std::vector<double>> budgets(const Call& call) = 0;
  // Throws Violation when the outputs of a call are not what the oracle says.
  virtual void judge(const Call& call, const HostTensors& outputs) = 0;

  // The call with the case's inputs generated again, for the call's sizes and options; `seed` is
  // added to the case's.
  virtual Call generated(const Call& call, uint64_t seed) = 0;
  // The call with the inputs that forward saves replaced by the oracle's at these options of
  // forward, e.g. rstd at eps = 0.
  virtual Call with_saved(const Call& call, const OptionSet& forward_options) = 0;

  // Captures the first call in a graph (on the host: keeps it prepared) and replays it in the same
  // memory with the inputs of each of these calls, which differ in their inputs only.
  virtual std::vector<HostTensors> replay(const std::vector<Call>& calls) = 0;
  // The calls on streams of their own, all at once, each `times` times: every one's inputs arrive
  // late, by a copy in its stream. Needs has_streams().
  virtual std::vector<HostTensors> run_on_streams(const std::vector<Call>& calls, int times) = 0;
  virtual bool has_streams() const = 0;
  // Whether rows may lie so far apart that there is no memory between them.
  virtual bool has_far_memory() const = 0;

  // Option sets of the contract that the pass has and that fit the case's sizes.
  virtual std::vector<OptionSet> option_sets() const = 0;
  // The call's tensors at addresses that nobody follows, and the workspace that it asks for.
  virtual Bound placed(const Call& call) const = 0;
  // What the launcher says of it. On the host nothing of an accepted call is run; on a GPU it is.
  // Throws Violation when it refuses a call and has launched a kernel; on the host.
  virtual Status ask(const Call& call, const Bound& bound) const = 0;

  virtual const OpSpec& op() const = 0;
  virtual const Pass& pass() const = 0;
  // The number of an option of the call, its default if it does not name it.
  virtual double option(const Call& call, const std::string& name) const = 0;
  // Which dimension of a tensor of the pass grows with the axis; -1: none does.
  virtual int dimension_of(const std::string& tensor, const std::string& axis) const = 0;

 protected:
  Call base_;

 private:
  HostTensors base_outputs_;
};

// ---- relations between outputs; all throw Violation ---------------------------------------------

// "3,17": the indices of element i.
std::string indices_of(const HostTensor& t, size_t i);

// The same bits in every element, NaN equal to NaN. `got_when` and `want_when` say what the two
// calls were, e.g. "in place".
void expect_same(const std::string& name, const HostTensor& got, const HostTensor& want,
                 const std::string& got_when, const std::string& want_when);
// For every output of `want`.
void expect_all_same(const HostTensors& got, const HostTensors& want, const std::string& got_when,
                     const std::string& want_when);
// Of two results each of which may be wrong by its own budget.
std::vector<double> sum(std::vector<double> a, const std::vector<double>& b);
// No element differs by more than its entry of `allowed`.
void expect_close(const std::string& name, const HostTensor& got, const HostTensor& want,
                  const std::vector<double>& allowed, const std::string& got_when,
                  const std::string& want_when);

}  // namespace tigon
