// SPDX-License-Identifier: Apache-2.0
// tigon-covered: runs cases, whose ids it reads one a line, over kernels that count the lines and
// branches that they take. `tigon check --lines` starts it; gcov reads what it leaves behind.
#include <cstdio>
#include <iostream>
#include <string>

#include "harness/run/executor.h"
#include "harness/run/judging/runner.h"

int main() {
  tigon::executor_set_threads(1);
  int code = tigon::kExitOk;
  for (std::string id; std::getline(std::cin, id);) {
    bool fatal = false;
    const tigon::CheckResult result = tigon::run_case(tigon::parse_case(id), "", &fatal);
    if (!tigon::is_failure(result.verdict)) continue;
    std::fprintf(stderr, "%s: %s: %s\n", id.c_str(), name_of(result.verdict),
                 result.reason.c_str());
    code = tigon::kExitIncorrect;
  }
  return code;
}
