// SPDX-License-Identifier: Apache-2.0
// One run of the program: its records file, JUnit file, counts and last line.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/cli/options/selection.h"
#include "harness/cli/resume.h"
#include "harness/judge/verdict.h"
#include "harness/record/junit.h"
#include "harness/record/record_writer.h"

namespace tigon::cli {

// Where results go and what is remembered with them.
struct SessionOptions {
  std::string out;    // folder; empty: results/<run_id>
  std::string json;   // records file in place of the folder's records.jsonl
  std::string junit;  // JUnit file; empty: none
  std::map<std::string, std::string> tags;
  uint64_t seed = 42;
  std::vector<std::string> command;        // as typed: "./tigon", "check", ...
  Shard shard;                             // the part of the cases that this run takes
  std::shared_ptr<const Resumed> resumed;  // the run to continue, if any
};

// Throws UsageError when the file that the options name holds another run, which is kept.
void require_no_run(const SessionOptions& options);

class Session {
 public:
  // Creates the records file and writes the "run" record, or the "resume" record of a run that is
  // continued. Throws RecordError; UsageError when the file holds another run, or when the run that
  // is continued was made on another device.
  explicit Session(SessionOptions options);

  // The run that is continued, or null.
  const Resumed* resumed() const { return options_.resumed.get(); }
  // Says that all records of a unit of work (a cell of a bench, a training) are written.
  void seal(const std::string& unit) { record("sealed", {{"unit", unit}}); }
  bool is_sealed(const std::string& unit) const {
    return resumed() != nullptr && resumed()->find("sealed", {{"unit", unit}}) != nullptr;
  }

  void record(std::string_view kind, const Json& fields) { writer_.write(kind, fields); }
  // A verdict that counts in the last line and the exit code.
  void count(Verdict verdict) { tally_.add(verdict); }
  void junit(JUnitCase c) { junit_.push_back(std::move(c)); }
  const std::vector<JUnitCase>& junit() const { return junit_; }

  const Tally& tally() const { return tally_; }
  std::filesystem::path folder() const;  // where the report of this run goes
  const std::filesystem::path& records() const { return writer_.path(); }

  // Writes the "end" record and the JUnit file and makes them durable. Throws RecordError.
  void finish(int exit_code);

 private:
  SessionOptions options_;
  std::string run_id_;
  RecordWriter writer_;
  std::vector<JUnitCase> junit_;
  Tally tally_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs `body` in a new session and ends it; `after` runs when the records are complete (the
// report). Returns the exit code: the body's combined with that of `after`, or that of Ctrl-C or of
// a full disk. Prints "results: FILE" and the last line "N passed, N failed, N skipped".
int run_session(SessionOptions options, const std::function<int(Session&)>& body,
                const std::function<int(Session&)>& after = {});

// The exit code of several: the lowest of those that are not 0; 130, Ctrl-C, wins.
int combined(int a, int b);

}  // namespace tigon::cli
