// SPDX-License-Identifier: Apache-2.0
// Faults of the world: what is injected, and what a run must show to have survived it.
#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/record/record_reader.h"
#include "harness/run/check.h"
#include "harness/tests/world_process.h"

namespace tigon::world {

struct Outcome {
  std::string problem;  // empty: survived
  std::string skipped;  // why it could not be injected; empty: it was
  std::string verdict;  // of the faulty case, if one is concerned
  int exit_code = -1;
};

struct Fault {
  std::string name, group, expected;
  std::function<Outcome()> inject;
};

std::vector<Fault> kernel_faults();   // of kernels and their libraries
std::vector<Fault> file_faults();     // of the files that a run writes
std::vector<Fault> system_faults();   // of limits, signals and clocks
std::vector<Fault> record_faults();   // of what a killed run leaves behind
std::vector<Fault> machine_faults();  // of GPU and driver
std::vector<Fault> plugin_faults();   // of libraries from outside
std::vector<Fault> input_faults();    // of what people type and of the files that they name

inline bool on_gpu() {
#ifdef TIGON_CUDA
  return true;
#else
  return false;
#endif
}

// ---- the usual run ------------------------------------------------------------------------------

// Seconds that a case may take: a GPU's first use takes some.
inline std::string case_limit() { return on_gpu() ? "8" : "1"; }

// check of the sizes 3, 5 (where an implementation fails) and 7 of these implementations, in
// this order, one child at a time.
inline std::vector<std::string> check_words(const std::vector<std::string>& implementations,
                                            const std::filesystem::path& folder,
                                            const std::string& limit = case_limit()) {
  return {"check",
          "--impl",
          fmt::format("{}", fmt::join(implementations, ",")),
          "--filter",
          "N=[357],inputs=normal,seed=42$",
          "--executor",
          on_gpu() ? "cuda" : "fast",
          "--jobs",
          "1",
          "--timeout",
          limit,
          "--out",
          folder.string()};
}

inline std::string id_of(const std::string& implementation, int size) {
  return fmt::format("world/forward/{}/f32/N={},inputs=normal,seed=42", implementation, size);
}

// Case id -> verdict of the `kind` records; of a case that is there twice, both, with a comma.
inline std::map<std::string, std::string> verdicts_in(const RecordFile& file,
                                                      const std::string& kind = "check") {
  std::map<std::string, std::string> verdicts;
  for (const Json& r : file.records) {
    if (r["record"] != kind) continue;
    std::string& verdict = verdicts[r["case_id"].get<std::string>()];
    if (!verdict.empty()) verdict += ',';
    verdict += r["verdict"].get<std::string>();
  }
  return verdicts;
}

// What these implementations must give when `bad` alone fails, with `verdict`, at size 5.
inline std::map<std::string, std::string> expected_verdicts(
    const std::vector<std::string>& implementations, const std::string& bad,
    const std::string& verdict) {
  std::map<std::string, std::string> verdicts;
  for (const std::string& i : implementations)
    for (const int size : {3, 5, 7})
      verdicts[id_of(i, size)] = i == bad && size == 5 ? verdict : "passed";
  return verdicts;
}

// Empty when the file holds one whole run that ended with this code.
inline std::string problem_with(const RecordFile& file, int exit_code) {
  if (file.damaged > 0 || file.torn) return "the records file is damaged";
  if (file.records.empty() || file.records.front()["record"] != "run") return "no run record";
  const Json& end = file.records.back();
  if (end["record"] != "end") return "the run is not sealed: its last record is no end";
  if (end["exit_code"] != exit_code)
    return fmt::format("the end says exit code {}", end["exit_code"].dump());
  for (const Json& r : file.records)
    if (r["run_id"] != file.records.front()["run_id"]) return "two runs in one file";
  return "";
}

inline std::string difference(const std::map<std::string, std::string>& got,
                              const std::map<std::string, std::string>& want) {
  for (const auto& [id, verdict] : want) {
    const auto found = got.find(id);
    if (found == got.end()) return fmt::format("{} has no verdict", id);
    if (found->second != verdict)
      return fmt::format("{} is {} instead of {}", id, found->second, verdict);
  }
  return got.size() > want.size() ? "more cases than were asked for" : "";
}

inline int code_of(const std::string& verdict) {
  return exit_code_of(parse_verdict(verdict).value_or(Verdict::kRuntimeError));
}

// The first of several problems.
inline std::string first_of(std::initializer_list<std::string> problems) {
  for (const std::string& problem : problems)
    if (!problem.empty()) return problem;
  return "";
}

inline std::string expect_code(const ProgramRun& run, int code) {
  return run.exit_code == code ? ""
                               : fmt::format("exit code {} instead of {}: {}", run.exit_code, code,
                                             run.err.substr(0, 200));
}

// One line on stderr that holds `part`.
inline std::string expect_line(const ProgramRun& run, const std::string& part) {
  const auto lines = std::count(run.err.begin(), run.err.end(), '\n');
  if (run.err.find(part) == std::string::npos)
    return fmt::format("stderr does not say '{}': {}", part, run.err.substr(0, 200));
  return lines == 1 ? "" : fmt::format("{} lines on stderr", lines);
}

// All of a run in `folder`: exit code, verdicts, seal.
inline std::string expect_run(const ProgramRun& run, const std::filesystem::path& folder, int code,
                              const std::map<std::string, std::string>& verdicts) {
  if (!std::filesystem::exists(folder / "records.jsonl"))
    return fmt::format("no records; exit code {}: {}", run.exit_code, run.err.substr(0, 200));
  const RecordFile file = read_records(folder / "records.jsonl");
  return first_of(
      {expect_code(run, code), problem_with(file, code), difference(verdicts_in(file), verdicts)});
}

}  // namespace tigon::world
