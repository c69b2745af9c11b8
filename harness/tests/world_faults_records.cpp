// SPDX-License-Identifier: Apache-2.0
// Faults of what a killed run leaves behind: --resume must lose nothing and repeat nothing.
#include <algorithm>
#include <random>

#include "harness/tests/world_faults.h"

namespace tigon::world {

extern int kills;

namespace {

namespace fs = std::filesystem;
constexpr const char* kGroup = "records";
const std::vector<std::string> kMixed = {"right", "segmentation_fault", "too_many_threads",
                                         "throws", "afterwards"};

const std::vector<std::string> kRight = {"right", "afterwards"};

// Of kMixed.
std::map<std::string, std::string> mixed_verdicts() {
  auto want = expected_verdicts(kMixed, "segmentation_fault", "crashed");
  want[id_of("too_many_threads", 5)] = "runtime_error";
  want[id_of("throws", 5)] = "runtime_error";
  return want;
}

int mixed_code() { return std::min(code_of("crashed"), code_of("runtime_error")); }

std::string bytes_of(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// Up to and including the last newline.
std::string whole_lines(const std::string& bytes) { return bytes.substr(0, bytes.rfind('\n') + 1); }

// Kills it after so long; true when it had not ended before.
bool killed_after(Process& process, std::chrono::microseconds pause) {
  std::this_thread::sleep_for(pause);
  process.signal(SIGKILL);
  return process.wait().exit_code == 128 + SIGKILL;
}

// One run, killed, continued, every second time killed and continued again.
std::string kill_and_resume(std::mt19937& random, std::chrono::microseconds longest, int* killed) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "records.jsonl";
  const auto pause = [&] {
    return std::chrono::microseconds(
        std::uniform_int_distribution<long>(0, longest.count())(random));
  };
  const std::vector<std::string> resume = {"check", "--resume", folder.path().string()};
  {
    Process process(check_words(kMixed, folder.path()));
    *killed += killed_after(process, pause());
  }
  std::string before = whole_lines(bytes_of(file));
  if (random() % 2 == 0 && !before.empty()) {
    Process process(resume);
    *killed += killed_after(process, pause());
    if (bytes_of(file).rfind(before, 0) != 0) return "a sealed record was lost";
    before = whole_lines(bytes_of(file));
  }
  // Killed before its first record there is nothing to continue.
  const ProgramRun run =
      Process(before.empty() ? check_words(kMixed, folder.path()) : resume).wait();
  return first_of({bytes_of(file).rfind(before, 0) != 0 ? "a sealed record was lost" : "",
                   expect_run(run, folder.path(), mixed_code(), mixed_verdicts())});
}

Outcome killed_at_random_times() {
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const ProgramRun whole = Process(check_words(kMixed, folder.path())).wait();
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  const std::string undisturbed = expect_run(whole, folder.path(), mixed_code(), mixed_verdicts());
  if (!undisturbed.empty()) return {undisturbed, {}, {}, whole.exit_code};
  std::mt19937 random(42);
  int good = 0, killed = 0;
  std::string first;
  for (int i = 0; i < kills; ++i) {
    const std::string problem = kill_and_resume(random, longest, &killed);
    good += problem.empty();
    if (first.empty()) first = problem;
  }
  if (good < kills) return {fmt::format("{} of {} continued: {}", good, kills, first), {}, {}, -1};
  return {killed < kills / 2 ? "it had mostly ended before it was killed" : "", {}, "passed", 0};
}

// Does something to the file of a finished run, continues it and expects all verdicts once;
// `repeated`: cases that must have run again.
Outcome damaged(const std::function<void(std::string*)>& damage, int repeated) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "records.jsonl";
  Process(check_words(kMixed, folder.path())).wait();
  std::string bytes = bytes_of(file);
  damage(&bytes);
  std::ofstream(file, std::ios::binary) << bytes;
  const size_t known = verdicts_in(read_records(file)).size();
  const ProgramRun run = Process({"check", "--resume", folder.path().string()}).wait();
  const RecordFile now = read_records(file);
  const std::string ran_again = static_cast<int>(mixed_verdicts().size() - known) == repeated
                                    ? ""
                                    : fmt::format("{} cases were lost, expected {}",
                                                  mixed_verdicts().size() - known, repeated);
  return {
      first_of({expect_code(run, mixed_code()), ran_again,
                difference(verdicts_in(now), mixed_verdicts()),
                now.records.back()["record"] == "end" ? "" : "not sealed", now.torn ? "torn" : ""}),
      {},
      {},
      run.exit_code};
}

// Where the line of a case starts and its length with the newline.
std::pair<size_t, size_t> line_of(const std::string& bytes, const std::string& id) {
  const size_t at = bytes.find("\"case_id\":\"" + id);
  const size_t start = bytes.rfind('\n', at) + 1;
  return {start, bytes.find('\n', at) + 1 - start};
}

Outcome two_at_once() {
  const TemporaryFolder folder;
  Process first(check_words(kRight, folder.path()));
  Process second(check_words(kRight, folder.path()));
  const ProgramRun a = first.wait(), b = second.wait();
  const bool first_won = a.exit_code == 0;
  const ProgramRun &winner = first_won ? a : b, &loser = first_won ? b : a;
  const std::string refused = loser.exit_code == 2 || loser.exit_code == 5
                                  ? ""
                                  : fmt::format("the other has exit code {}", loser.exit_code);
  return {first_of({refused, expect_line(loser, "run"),
                    expect_run(winner, folder.path(), 0, expected_verdicts(kRight, "", ""))}),
          {},
          "passed",
          loser.exit_code};
}

// A second run into the folder of one that still runs.
Outcome second_writer() {
  const TemporaryFolder folder;
  const std::vector<std::string> waiting = {"right", "waits_for_kill", "afterwards"};
  Process first(check_words(waiting, folder.path(), on_gpu() ? "8" : "2"));
  const fs::path file = folder.path() / "records.jsonl";
  const auto started = [&] {
    return fs::exists(file) && verdicts_in(read_records(file)).size() >= 4;
  };
  if (!wait_until(started)) return {"it did not start", {}, {}, -1};
  const ProgramRun fresh = Process(check_words(waiting, folder.path())).wait();
  const ProgramRun resumed = Process({"check", "--resume", folder.path().string()}).wait();
  const ProgramRun run = first.wait();
  return {first_of({expect_code(fresh, 2), expect_line(fresh, "holds another run"),
                    resumed.exit_code == 5 || resumed.exit_code == 0 ? "" : "resumed beside it",
                    expect_run(run, folder.path(), 5,
                               expected_verdicts(waiting, "waits_for_kill", "timeout"))}),
          {},
          "timeout",
          fresh.exit_code};
}

Outcome other_build() {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "records.jsonl";
  Process(check_words(kMixed, folder.path())).wait();
  // A program that differs in one byte behind its end.
  fs::create_directory(folder.path() / "other");
  const fs::path copy = folder.path() / "other" / "tigon";
  fs::copy_file(world_program(), copy);
  std::ofstream(copy, std::ios::app) << "x";
  const std::string before = bytes_of(file);
  Surroundings s;
  s.program = copy;
  const ProgramRun run = Process({"check", "--resume", folder.path().string()}, s).wait();
  return {first_of({expect_code(run, 2), expect_line(run, "another build"),
                    bytes_of(file) == before ? "" : "the records have changed"}),
          {},
          {},
          run.exit_code};
}

}  // namespace

std::vector<Fault> record_faults() {
  const char* same = "same verdicts after --resume";
  return {{fmt::format("kill -9 at random times, {} times", kills), kGroup,
           fmt::format("{} of {} continued", kills, kills), killed_at_random_times},
          {"torn last line", kGroup, same,
           [] {
             return damaged(
                 [](std::string* bytes) {
                   const auto [start, length] = line_of(*bytes, id_of("throws", 5));
                   bytes->resize(start + length / 2);
                 },
                 8);  // it and those that come after it
           }},
          {"a flipped bit", kGroup, same,
           [] {
             return damaged(
                 [](std::string* bytes) {
                   // 42 becomes 43: still a record, but not the one that was written.
                   const auto [start, length] = line_of(*bytes, id_of("right", 5));
                   (*bytes)[bytes->find("\"seed\":42", start) + 8] ^= 1;
                 },
                 1);
           }},
          {"zeros at the end, as after a power cut", kGroup, same,
           [] {
             return damaged(
                 [](std::string* bytes) {
                   const auto [start, length] = line_of(*bytes, id_of("afterwards", 7));
                   bytes->resize(start);
                   bytes->append(4096, '\0');
                 },
                 1);
           }},
          {"a line of another program", kGroup, same,
           [] { return damaged([](std::string* bytes) { *bytes += "Segmentation fault\n"; }, 0); }},
          {"two writers start at once", kGroup, "one passed, the other exit 2 or 5", two_at_once},
          {"a second writer", kGroup, "exit 2, the first undisturbed", second_writer},
          {"--resume with another build", kGroup, "exit 2", other_build}};
}

}  // namespace tigon::world
