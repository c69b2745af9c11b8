// SPDX-License-Identifier: Apache-2.0
// Faults of plug-in libraries: of the interface that they were built for, while they are loaded and
// in a call.
#include "harness/tests/bad_inputs.h"
#include "harness/tests/world_faults.h"

namespace tigon::world {
namespace {

namespace fs = std::filesystem;
constexpr const char* kGroup = "plug-in";
constexpr int kBadTokens = 3;  // what calls go wrong

ProgramRun check(const std::string& fault, const fs::path& folder) {
  const std::vector<std::string> words = {"check",
                                          "--impl-from",
                                          plugin_library("bad_plugin"),
                                          "--dtype",
                                          "f32",
                                          "--seed",
                                          "42",
                                          "--filter",
                                          "T=[123],H=8,inputs=normal,seed=42$",
                                          "--executor",
                                          on_gpu() ? "cuda" : "fast",
                                          "--jobs",
                                          "1",
                                          "--timeout",
                                          case_limit(),
                                          "--out",
                                          folder.string()};
  Surroundings s;
  s.program = tigon_program();
  s.variables = {"BAD_PLUGIN=" + fault, fmt::format("BAD_PLUGIN_TOKENS={}", kBadTokens)};
  return Process(words, s).wait();
}

// A library that is not used at all: one line, and no records of a run that never was.
Fault refused(const std::string& name, const std::string& fault, int code,
              const std::string& message) {
  return {name, kGroup, fmt::format("exit {}", code), [=] {
            const TemporaryFolder folder;
            const ProgramRun run = check(fault, folder.path() / "results");
            return Outcome{
                first_of({expect_code(run, code), expect_line(run, message),
                          fs::exists(folder.path() / "results") ? "it left records" : ""}),
                {},
                {},
                run.exit_code};
          }};
}

// A library that fails in one call of three: the other two are judged.
Fault failing(const std::string& name, const std::string& fault, const std::string& verdict) {
  return {name, kGroup, fmt::format("{}, exit {}", verdict, code_of(verdict)), [=] {
            const TemporaryFolder folder;
            const ProgramRun run = check(fault, folder.path());
            std::map<std::string, std::string> want;
            for (const int tokens : {1, 2, kBadTokens})
              want[fmt::format("rms_norm/forward/plugin:bad/f32/T={},H=8,inputs=normal,seed=42",
                               tokens)] = tokens == kBadTokens ? verdict : "passed";
            return Outcome{
                expect_run(run, folder.path(), code_of(verdict), want), {}, verdict, run.exit_code};
          }};
}

}  // namespace

std::vector<Fault> plugin_faults() {
  std::vector<Fault> faults = {
      refused("ABI of another version", "abi_2", 2, "it speaks ABI 2, this tigon speaks 1"),
      refused("op without a function", "null_run", 2, "run is a null pointer"),
      refused("unknown dtype code", "dtype_99", 2, "its op has dtype 99"),
      refused("crash while it is loaded", "load_segfaults", 5, "ended by signal 11"),
      refused("exit(0) while it is loaded", "load_exits_0", 5, "exit code 0"),
  };
  if (on_gpu()) return faults;  // its kernel is one of the host
  for (Fault& fault :
       std::vector<Fault>{failing("segmentation fault in a call", "segfault", "crashed"),
                          failing("exit(0) in a call", "exits_0", "crashed"),
                          failing("hang in a call", "hangs", "timeout"),
                          failing("exception in a call", "throws", "runtime_error")})
    faults.push_back(std::move(fault));
  return faults;
}

}  // namespace tigon::world
