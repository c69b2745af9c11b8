// SPDX-License-Identifier: Apache-2.0
// JUnit XML of checks, as CI services read it.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tigon {

struct JUnitCase {
  std::string suite;  // the op
  std::string classname;
  std::string name;
  double seconds = 0;
  enum Outcome { kPassed, kFailure, kError, kSkipped } outcome = kPassed;
  std::string verdict = {}, reason = {};  // of all but kPassed
  std::string details = {};               // the text of a failure or error, e.g. the repro line
};

// One <testsuite> per suite in order of first appearance. `failure` stands for wrong numbers,
// `error` for crashes, time-outs and other trouble. Control characters are left out.
std::string junit_xml(const std::vector<JUnitCase>& cases);

// Writes the file whole or not at all (temporary file and rename; devices are written in place).
// Throws RecordError.
void write_junit(const std::filesystem::path& path, const std::vector<JUnitCase>& cases);

}  // namespace tigon
