// SPDX-License-Identifier: Apache-2.0
// Faults of programs, signals and clocks around a run.
#include <sys/stat.h>

#include <algorithm>

#include "harness/tests/world_surroundings.h"

namespace tigon::world {
namespace {

namespace fs = std::filesystem;
// ---- programs -----------------------------------------------------------------------------------

const std::vector<std::string> kWaiting = {"right", "waits_for_kill", "afterwards"};

// Checks of kWaiting that are recorded when its hanging case is at hand.
bool is_waiting(const fs::path& folder) {
  std::error_code missing;
  if (!fs::exists(folder / "records.jsonl", missing)) return false;
  return verdicts_in(read_records(folder / "records.jsonl")).size() >= 4;
}

Outcome program_deleted() {
  const TemporaryFolder folder;
  const fs::path copy = folder.path() / "tigon", out = folder.path() / "results";
  fs::copy_file(world_program(), copy);
  Surroundings s;
  s.program = copy;
  Process process(check_words(kWaiting, out, on_gpu() ? "8" : "2"), s);
  if (!wait_until([&] { return is_waiting(out); })) return {"it did not start", {}, {}, -1};
  fs::remove(copy);
  std::ofstream(copy) << "not a program\n";
  const ProgramRun run = process.wait();
  return {expect_run(run, out, 5, expected_verdicts(kWaiting, "waits_for_kill", "timeout")),
          {},
          "timeout",
          run.exit_code};
}

Outcome child_killed() {
  const TemporaryFolder folder;
  Process process(check_words(kWaiting, folder.path(), "60"));
  if (!wait_until([&] { return is_waiting(folder.path()); }))
    return {"it did not start", {}, {}, -1};
  for (const pid_t child : process.children()) kill(child, SIGKILL);
  const ProgramRun run = process.wait();
  return {
      expect_run(run, folder.path(), 5, expected_verdicts(kWaiting, "waits_for_kill", "crashed")),
      {},
      "crashed",
      run.exit_code};
}

std::vector<Fault> program_faults() {
  const char* group = "programs";
  std::vector<Fault> faults = {
      {"program replaced while it runs", group, "timeout, exit 5", program_deleted},
      {"kill -9 of a child", group, "crashed, exit 5", child_killed},
      passing(group, "16 file descriptors", [](const fs::path&) {
        Surroundings s;
        if (!on_gpu()) s.before_exec = [] { limit(RLIMIT_NOFILE, 16); };  // a driver needs more
        return s;
      })};
  if (on_gpu()) return faults;
  // Children cannot be started: each case says so.
  faults.push_back(
      {"no descriptor left for a child", group, "crashed, exit 5", [] {
         const TemporaryFolder folder;
         Surroundings s;
         s.before_exec = [] { limit(RLIMIT_NOFILE, 8); };
         const ProgramRun run = Process(check_words(kRight, folder.path()), s).wait();
         std::map<std::string, std::string> want = all_passed();
         for (auto& [id, verdict] : want) verdict = "crashed";
         return Outcome{expect_run(run, folder.path(), 5, want), {}, "crashed", run.exit_code};
       }});
  return faults;
}

// ---- signals ------------------------------------------------------------------------------------

// What is done is kept and sealed; --resume does the rest.
Fault signal_fault(const char* name, int number) {
  return {name, "signals", "exit 130, then --resume", [number] {
            const TemporaryFolder folder;
            Process process(check_words(kWaiting, folder.path(), on_gpu() ? "8" : "2"));
            if (!wait_until([&] { return is_waiting(folder.path()); }))
              return Outcome{"it did not start", {}, {}, -1};
            process.signal(number);
            const ProgramRun run = process.wait(20);
            const RecordFile file = read_records(folder.path() / "records.jsonl");
            const std::string first =
                first_of({expect_code(run, 130), problem_with(file, 130),
                          verdicts_in(file).size() < 4 ? "finished cases are missing" : ""});
            const ProgramRun rest = Process({"check", "--resume", folder.path().string()}).wait();
            const auto want = expected_verdicts(kWaiting, "waits_for_kill", "timeout");
            return Outcome{first_of({first, expect_run(rest, folder.path(), 5, want)}),
                           {},
                           "timeout",
                           run.exit_code};
          }};
}

Outcome nobody_reads() {
  const TemporaryFolder folder;
  int ends[2];
  if (pipe(ends) != 0) return {"no pipe", {}, {}, -1};
  Surroundings s;
  s.stdout_file = "inherited";
  s.before_exec = [&] {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    ::signal(SIGPIPE, SIG_DFL);
  };
  Process process(check_words(kRight, folder.path()), s);
  close(ends[0]);
  close(ends[1]);
  const ProgramRun run = process.wait();
  const RecordFile file = read_records(folder.path() / "records.jsonl");
  return {first_of({expect_code(run, 5), expect_line(run, "standard output"), problem_with(file, 0),
                    difference(verdicts_in(file), all_passed())}),
          {},
          "passed",
          run.exit_code};
}

// Stopped for longer than a case may take, while a result is on its way: not a time-out.
Outcome stopped_and_continued() {
  const TemporaryFolder folder;
  const std::vector<std::string> many = {"right", "takes_all_descriptors",
                                         "changes_its_surroundings", "afterwards"};
  Process process(check_words(many, folder.path(), on_gpu() ? "5" : "0.5"));
  const auto started = [&] { return fs::exists(folder.path() / "records.jsonl"); };
  if (!wait_until(started)) return {"it did not start", {}, {}, -1};
  process.signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(on_gpu() ? 6000 : 800));
  process.signal(SIGCONT);
  const ProgramRun run = process.wait();
  return {expect_run(run, folder.path(), 0, expected_verdicts(many, "", "")),
          {},
          "passed",
          run.exit_code};
}

// Nothing that the run started lives on without it.
Outcome no_orphans() {
  const TemporaryFolder folder;
  Process process(check_words(kWaiting, folder.path(), "60"));
  if (!wait_until([&] { return is_waiting(folder.path()); }))
    return {"it did not start", {}, {}, -1};
  const std::vector<pid_t> children = process.children();
  process.signal(SIGKILL);
  const ProgramRun run = process.wait();
  const auto gone = [&] {
    return std::all_of(children.begin(), children.end(), [](pid_t child) {
      std::ifstream file("/proc/" + std::to_string(child) + "/stat");
      std::string text;
      std::getline(file, text);
      return text.empty() || text.find(") Z ") != std::string::npos;
    });
  };
  const bool ended = wait_until(gone, 10);
  return {first_of({children.empty() ? "no child was found" : "",
                    ended ? "" : "a child lives on after its parent", expect_code(run, 137)}),
          {},
          {},
          run.exit_code};
}

std::vector<Fault> signal_faults() {
  const char* group = "signals";
  return {signal_fault("SIGINT (Ctrl-C)", SIGINT),
          signal_fault("SIGTERM", SIGTERM),
          signal_fault("SIGHUP (terminal closed)", SIGHUP),
          {"SIGPIPE (nobody reads stdout)", group, "passed, exit 5", nobody_reads},
          {"SIGSTOP and SIGCONT", group, "passed, exit 0", stopped_and_continued},
          {"SIGKILL leaves no child behind", group, "exit 137", no_orphans}};
}

// ---- surroundings -------------------------------------------------------------------------------

// Every look at the clock of the day jumps, by a day forth or an hour back; times stay right.
Outcome clock_steps() {
  const TemporaryFolder folder;
  Surroundings s;
  s.variables = {"LD_PRELOAD=" + (world_program().parent_path() / "libworld_clock.so").string()};
  const ProgramRun run = Process(check_words(kRight, folder.path()), s).wait();
  const std::string problem = expect_run(run, folder.path(), 0, all_passed());
  if (!problem.empty()) return {problem, {}, "passed", run.exit_code};
  std::set<std::string> days;
  const RecordFile file = read_records(folder.path() / "records.jsonl");
  for (const Json& r : file.records) {
    days.insert(r["time"].get<std::string>().substr(0, 10));
    if (r.contains("seconds_s") && !(r["seconds_s"] >= 0 && r["seconds_s"] < 60))
      return {"a time is wrong: " + r["seconds_s"].dump(), {}, "passed", run.exit_code};
  }
  return {days.size() > 1 ? "" : "the clock did not step", {}, "passed", run.exit_code};
}

std::vector<Fault> surroundings_faults() {
  const char* group = "surroundings";
  const auto with = [](std::vector<std::string> variables) {
    return [variables](const fs::path&) {
      Surroundings s;
      s.variables = variables;
      return s;
    };
  };
  return {{"clock steps", group, "passed, exit 0", clock_steps},
          passing(group, "locale with decimal commas",
                  with({"LC_ALL=de_DE.UTF-8", "LANG=de_DE.UTF-8", "LC_NUMERIC=de_DE.UTF-8"})),
          passing(group, "no temporary folder", with({"TMPDIR=/nonexistent"})),
          passing(group, "no PATH and no HOME", with({"PATH=", "HOME="})),
          passing(group, "umask 0077", [](const fs::path&) {
            Surroundings s;
            s.before_exec = [] { umask(0077); };
            return s;
          })};
}

}  // namespace

std::vector<Fault> system_faults() {
  std::vector<Fault> all;
  for (auto& group : {program_faults(), signal_faults(), surroundings_faults()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace tigon::world
