// SPDX-License-Identifier: Apache-2.0
// Bad inputs as faults: each table of them is one.
#include <cstdlib>
#include <memory>

#include "harness/record/build_info.h"
#include "harness/tests/bad_inputs.h"
#include "harness/tests/world_faults.h"

namespace tigon::world {
namespace {

constexpr const char* kGroup = "bad inputs";
constexpr const char* kExpected = "one line, right exit code";

// Those of the commands in Python: damaged records, baselines and other tools' files.
Outcome python_inputs() {
  const char* python = std::getenv("TIGON_PYTHON");
  const std::string test = build_info().source_dir + "/reports/tests/test_bad_inputs.py";
  if (python == nullptr) return {{}, "TIGON_PYTHON is not set; ./tigon faults sets it", {}, -1};
  if (!std::filesystem::exists(test)) return {{}, "the source tree is not there", {}, -1};
  Surroundings s;
  s.program = python;
  const ProgramRun run = Process({test}, s).wait();
  return {expect_code(run, 0), {}, {}, run.exit_code};
}

}  // namespace

std::vector<Fault> input_faults() {
  std::vector<Fault> faults;
  const auto files = std::make_shared<const BadFiles>();
  for (const BadInputTable& table : bad_inputs(*files))
    faults.push_back({fmt::format("{}: {} bad ones", table.name, table.inputs.size()), kGroup,
                      kExpected, [files, table] {
                        const auto problems = problems_of(table, *files);
                        return Outcome{problems.empty()
                                           ? ""
                                           : fmt::format("{} of {}: {}", problems.size(),
                                                         table.inputs.size(), problems[0]),
                                       {},
                                       {},
                                       -1};
                      }});
  faults.push_back(
      {"records, baselines and files of the Python commands", kGroup, kExpected, python_inputs});
  return faults;
}

}  // namespace tigon::world
