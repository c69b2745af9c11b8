// SPDX-License-Identifier: Apache-2.0
// Runs in bad surroundings: those that must pass all the same, and those that must be refused.
#pragma once
#include <sys/resource.h>

#include "harness/tests/world_faults.h"

namespace tigon::world {

const inline std::vector<std::string> kRight = {"right", "afterwards"};

inline std::map<std::string, std::string> all_passed() { return expected_verdicts(kRight, "", ""); }

inline void limit(decltype(RLIMIT_FSIZE) resource, rlim_t value) {
  const rlimit limits = {value, value};
  setrlimit(resource, &limits);
}

inline Fault passing(
    const char* group, const char* name,
    const std::function<Surroundings(const std::filesystem::path&)>& surroundings) {
  return {name, group, "passed, exit 0", [=] {
            const TemporaryFolder folder;
            const std::filesystem::path out = folder.path() / "results";
            const ProgramRun run =
                Process(check_words(kRight, out), surroundings(folder.path())).wait();
            return Outcome{expect_run(run, out, 0, all_passed()), {}, "passed", run.exit_code};
          }};
}

// A run that cannot keep its records: one line on stderr, this exit code, nothing else is touched.
inline Fault refused(
    const char* group, const char* name, int code, const std::string& message,
    const std::function<std::vector<std::string>(const std::filesystem::path&)>& words,
    const std::function<Surroundings(const std::filesystem::path&)>& surroundings =
        [](const std::filesystem::path&) { return Surroundings{}; }) {
  return {
      name, group, fmt::format("exit {}", code), [=] {
        const TemporaryFolder folder;
        const ProgramRun run = Process(words(folder.path()), surroundings(folder.path())).wait();
        return Outcome{
            first_of({expect_code(run, code), expect_line(run, message)}), {}, {}, run.exit_code};
      }};
}

}  // namespace tigon::world
