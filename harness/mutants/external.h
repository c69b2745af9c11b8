// SPDX-License-Identifier: Apache-2.0
// Groups of planted faults that a program of their own runs: those of the comparator and plug-in
// kernels that cheat. The program lies beside this one and prints one JSON line per fault:
//   {"group": "comparator", "name": ..., "what": ..., "caught": true, "by": [tests that failed]}
//   {"group": "cheat", "mutant": ..., "defence": ..., "outcome": "caught", "verdict": ...,
//    "case_id": ..., "reason": ...}   or "not_applicable": this machine lacks the defence
// Exit code 0: every fault was caught, and what should pass did.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tigon {

class Json;

struct ExternalGroup {
  std::string name;
  std::string program;  // beside this one
};
const std::vector<ExternalGroup>& external_groups();

struct ExternalResult {
  std::string group = {}, name = {}, what = {};
  bool caught = false;
  bool applies = true;       // else by says why there is no statement
  std::string by = {};       // what noticed it
  std::string verdict = {};  // of the case that caught it, where a case did
  std::string case_id = {};
};
using ExternalSink = std::function<void(const ExternalResult&)>;

// Where a group's program lies; empty when it was not built.
std::string external_program(const ExternalGroup& group);

// Runs the program of a group and calls sink for each fault as it comes. A line that cannot be read
// or a program that ends badly, uninterrupted, is a fault of the name "program" that was not
// caught.
void run_external(const ExternalGroup& group, const ExternalSink& sink);

// As in harness/record/record.schema.json, KIND mutant.
Json to_json(const ExternalResult& result);

}  // namespace tigon
