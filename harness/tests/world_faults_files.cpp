// SPDX-License-Identifier: Apache-2.0
// Faults of the files that a run writes.
#include <linux/capability.h>
#include <sys/prctl.h>

#include "harness/tests/world_surroundings.h"

namespace tigon::world {
namespace {

namespace fs = std::filesystem;

// The disk takes 4 kB and no more; when there is space again, --resume does the rest.
Outcome disk_full(const Surroundings& full, const std::string& message) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "results";
  const ProgramRun run = Process(check_words(kRight, out), full).wait();
  const RecordFile kept = read_records(out / "records.jsonl");
  const std::string first =
      first_of({expect_code(run, kExitInfrastructure), expect_line(run, message),
                kept.damaged > 0 || kept.torn ? "a line is torn" : "",
                kept.records.size() < 3 ? "no finished record was kept" : ""});
  const ProgramRun rest = Process({"check", "--resume", out.string()}).wait();
  return {first_of({first, expect_run(rest, out, 0, all_passed())}), {}, {}, run.exit_code};
}

// Our own disk: mounting a small one needs rights that a container has not.
Surroundings bad_disk(const std::string& kind) {
  Surroundings s;
  s.variables = {"LD_PRELOAD=" + (world_program().parent_path() / "libworld_disk.so").string(),
                 "WORLD_DISK=" + kind};
  return s;
}

Outcome no_space_left() { return disk_full(bad_disk("full"), "No space left on device"); }

Outcome file_size_limit() {
  Surroundings s;
  s.before_exec = [] { limit(RLIMIT_FSIZE, 4096); };
  return disk_full(s, "File too large");
}

// Records were written and perhaps are not durable: no success.
Outcome disk_fails_to_sync() {
  const TemporaryFolder folder;
  const ProgramRun run = Process(check_words(kRight, folder.path()), bad_disk("sync")).wait();
  const RecordFile file = read_records(folder.path() / "records.jsonl");
  return {first_of({expect_code(run, 5), expect_line(run, "Input/output error"),
                    problem_with(file, 0), difference(verdicts_in(file), all_passed())}),
          {},
          "passed",
          run.exit_code};
}

// A folder whose mode forbids writing. Root may write there all the same, so root gives that right
// up; exit code 125 when it may not even do that.
Outcome forbidden_folder() {
  const TemporaryFolder folder;
  const fs::path closed = folder.path() / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec);
  Surroundings s;
  s.before_exec = [] {
    if (prctl(PR_CAPBSET_READ, CAP_DAC_OVERRIDE) == 1 && geteuid() == 0 &&
        prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) != 0)
      _exit(125);
  };
  const ProgramRun run = Process(check_words(kRight, closed / "results"), s).wait();
  if (run.exit_code == 125)
    return {{}, "this root may not give up the right to write everywhere", {}, -1};
  return {first_of({expect_code(run, 5), expect_line(run, "Permission denied"),
                    fs::is_empty(closed) ? "" : "it wrote there"}),
          {},
          {},
          run.exit_code};
}

// Takes no new folders, not even from root.
const fs::path kReadOnly = fs::exists("/sys/kernel") ? "/sys/kernel" : "/proc/self";

}  // namespace

std::vector<Fault> file_faults() {
  const char* group = "files";
  return {
      {"disk full, then --resume", group, "exit 5, then all passed", no_space_left},
      {"limit of a file's size, then --resume", group, "exit 5, then all passed", file_size_limit},
      {"disk that fails to sync", group, "passed, exit 5", disk_fails_to_sync},
      {"folder that forbids writing", group, "exit 5", forbidden_folder},
      refused(group, "records on a full device", 5, "cannot write /dev/full: No space left",
              [](const fs::path&) {
                auto words = check_words(kRight, "");
                words.resize(words.size() - 2);
                words.insert(words.end(), {"--json", "/dev/full"});
                return words;
              }),
      {"stdout on a full device", group, "passed, exit 5",
       [] {
         const TemporaryFolder folder;
         Surroundings s;
         s.stdout_file = "/dev/full";
         const ProgramRun run = Process(check_words(kRight, folder.path()), s).wait();
         const RecordFile file = read_records(folder.path() / "records.jsonl");
         return Outcome{
             first_of({expect_code(run, 5), expect_line(run, "standard output"),
                       problem_with(file, 0), difference(verdicts_in(file), all_passed())}),
             {},
             "passed",
             run.exit_code};
       }},
      refused(group, "read-only file system", 5, "cannot write",
              [](const fs::path&) { return check_words(kRight, kReadOnly / "tigon"); }),
      refused(
          group, "read-only working directory", 5, "cannot write",
          [](const fs::path&) {
            auto words = check_words(kRight, "");
            words.resize(words.size() - 2);
            return words;
          },
          [](const fs::path&) {
            Surroundings s;
            s.folder = kReadOnly;
            return s;
          }),
      refused(group, "a file where a folder should be", 5, "cannot write",
              [](const fs::path& folder) {
                std::ofstream(folder / "file") << "x";
                return check_words(kRight, folder / "file" / "results");
              }),
      refused(group, "folder of another run", 2, "holds another run",
              [](const fs::path& folder) {
                std::ofstream(folder / "records.jsonl") << "{\"record\":\"run\"}\n";
                return check_words(kRight, folder);
              }),
      passing(group, "missing folders", [](const fs::path&) { return Surroundings{}; }),
      refused(
          group, "working directory that was deleted", 5, "working directory",
          [](const fs::path& folder) { return check_words(kRight, folder / "results"); },
          [](const fs::path& folder) {
            Surroundings s;
            s.before_exec = [gone = folder / "gone"] {
              fs::create_directory(gone);
              fs::current_path(gone);
              fs::remove(gone);
            };
            return s;
          }),
      {"JUnit file that cannot be written", group, "passed, exit 5", [] {
         const TemporaryFolder folder;
         auto words = check_words(kRight, folder.path());
         words.insert(words.end(), {"--junit", "/proc/no/junit.xml"});
         const ProgramRun run = Process(words).wait();
         const RecordFile file = read_records(folder.path() / "records.jsonl");
         return Outcome{
             first_of({expect_code(run, 5), expect_line(run, "cannot write /proc/no"),
                       problem_with(file, 0), difference(verdicts_in(file), all_passed())}),
             {},
             "passed",
             run.exit_code};
       }}};
}

}  // namespace tigon::world
