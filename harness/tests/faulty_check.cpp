// SPDX-License-Identifier: Apache-2.0
// A program that checks the faulty op as `tigon check` does: through GoogleTest. It holds no other
// tests, because those would run too.
#include <cstdio>
#include <cstring>

#include "harness/run/process/child.h"

namespace {

// What `tigon check` does, for tests that start this program: results, then counts.
int check_as_gtest(int argc, char** argv) {
  tigon::install_interrupt_handler();
  tigon::CheckRequest request;
  request.implementations = {"right", "wrong", "hangs", "cannot"};
  request.tier = tigon::Tier::kTiny;
  request.dtypes = {tigon::DType::kF32};
  request.filter = "inputs=normal,seed=42$";
  request.timeout_s = std::strcmp(argv[1], "patient") == 0 ? 20 : 0.3;
  const auto print = [](const tigon::CheckResult& r) {
    std::printf("%s %s\n", name_of(r.verdict), case_id(r.c).c_str());
    std::fflush(stdout);
  };
  const tigon::CheckReport report = tigon::run_checks_as_gtest(request, print, &argc, argv);
  std::printf("%s\n", report.tally.line().c_str());
  return report.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return tigon::kExitUsage;
  if (std::strcmp(argv[1], "child") == 0) return tigon::child_main(argc, argv);
  return check_as_gtest(argc, argv);
}
