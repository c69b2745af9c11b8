// SPDX-License-Identifier: Apache-2.0
// Outputs of measured calls against the oracle: at the measured size, in sampled rows and columns,
// which are few enough for it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/measure/sample.h"
#include "harness/measure/timing.h"
#include "harness/run/judging/oracle.h"

namespace tigon {

// What the oracle says of one implementation.
struct Verified {
  Verdict verdict = Verdict::kPassed;
  std::string reason;        // of all but passed
  std::string by;            // what was compared: "the oracle: y, rstd in 64 of 16384 rows"
  std::string not_compared;  // which outputs were not, and why; empty: none
  std::vector<uint64_t> fingerprints;  // of the outputs on the timed inputs, if they were compared
};

// The oracle's answers for one cell, for any number of its implementations. Each output is compared
// where one of these has it:
//   rows      sampled rows of the timed inputs, of ops whose rows stand alone
//   columns   all rows of sampled columns, of outputs that sum over rows (Pass::sums_by)
//   ignored   a call of the same size whose other rows are ignored, of losses, whose rows share a
//             mean; where a row is too much for the oracle its input is 0 outside of sampled
//             columns, too (Pass::zero_columns)
class Verification {
 public:
  // Fills the set's inputs. `elements`: of all tensors in the sample, about.
  Verification(const Case& c, CallSet& set, int64_t elements);

  // Runs the contender on the set. Throws DeviceError.
  Verified of(const Contender& contender, CallSet& set) const;
  // The same into its timings; those that have not passed stay as they are.
  void judge(const Contender& contender, CallSet& set, const std::vector<Timing*>& timings) const;

 private:
  // One way to compare some of the outputs.
  struct View {
    Sample sample;
    bool ignores_others = false;
    std::vector<std::string> outputs;
    Problem problem = {};
    std::map<std::string, Expected> expected = {};
  };

  void choose_views(const CallSet& set, int64_t elements);
  void choose_outputs(const CallSet& set, View* rows, View* columns);
  void ask_oracle(View* view, const CallSet& set) const;
  void ignore_others(const View& view, CallSet& set) const;
  void zero_others(const View& view, const ZeroColumns& zero, CallSet& set) const;
  std::vector<uint64_t> run(const Contender& contender, CallSet& set, const View& view) const;
  void compare_outputs(const View& view, const Contender& contender, const CallSet& set,
                       Verified* verified) const;
  std::string places(const View& view) const;

  Case case_;
  std::string row_axis_, targets_;  // targets_: the tensor of indices, if there is one
  std::vector<View> views_;
  std::string not_compared_;
};

}  // namespace tigon
