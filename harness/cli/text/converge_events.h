// SPDX-License-Identifier: Apache-2.0
// What a training in a child tells: lines of JSON in the child, records, text and counts here.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convergence/experiment.h"
#include "harness/cli/session.h"
#include "harness/cli/text/terminal.h"
#include "harness/measure/run_in_child.h"

namespace tigon::cli {

// In the child: everything that happens becomes a line.
convergence::ConvergeObserver observer_of(const Emit& emit);
void emit_claim(const Emit& emit, const convergence::ClaimReport& report);

// In this process: lines of the child become records, a progress bar and text.
class ConvergeListener {
 public:
  explicit ConvergeListener(Session* session) : session_(session) {}
  void operator()(const Json& line);
  // So many steps are to come, in trainings one after the other.
  void expect(const std::string& what, int steps);
  // What is done before the first of them.
  void begin(const std::string& label) { bar().begin(label); }

  const std::string& error() const { return error_; }
  int error_code() const { return error_code_; }
  const Tally& tally() const { return tally_; }
  const std::vector<Json>& claims() const { return claims_; }
  const std::vector<Json>& parts() const { return parts_; }
  int alarms() const { return alarms_; }  // false ones, over the seeds
  void count(Verdict verdict);
  // What a record of this kind counts, in a run that goes on, too.
  void count_record(const std::string& kind, const Json& fields);

 private:
  void step(const Json& fields, const Json& line);
  void count_seed(const Json& fields);
  void record(const std::string& kind, const Json& fields, const Json& line);
  Progress& bar();

  Session* session_;
  std::unique_ptr<Progress> progress_;
  bool of_all_ = false;  // trainings, else of the one at hand
  bool begun_ = false;   // what comes before their first step
  int seeds_ = 0, alarms_ = 0;
  std::string training_;  // the one at hand
  std::string error_;
  int error_code_ = 0;
  bool predictors_shown_ = false;  // the head of their table
  Tally tally_;
  std::vector<Json> claims_, parts_;
};

// The complete trainings of this config that a run to continue has in its records.
std::vector<convergence::RunReport> finished_runs(const Session& session,
                                                  const std::string& config);

// What a unit does in its child. After Ctrl-C `stop` is true as soon as something is emitted.
using UnitWork = std::function<void(const Emit&, const std::atomic<bool>& stop)>;

// Runs a unit of work in a child and seals it. Returns its exit code.
int run_unit(Session& session, const std::string& unit, const UnitWork& work,
             ConvergeListener& listener);

}  // namespace tigon::cli
