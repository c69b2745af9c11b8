// SPDX-License-Identifier: Apache-2.0
// tigon-cheats: judges every cheat with tigon itself and prints one JSON line for each:
// {mutant, group: "cheat", outcome, verdict, case_id, reason, ...}. Exit code 0 when all are caught
// and an honest kernel passes the same cases. tigon-cheats [NAME...]: those only.
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/json/json.h"
#include "harness/plugin/cheats/cheat_table.h"

namespace tigon::plugin {
namespace {

namespace fs = std::filesystem;

// cheat.h: what its honest work costs at least.
constexpr double kHonestSeconds = 3e-3;

fs::path programs() { return fs::read_symlink("/proc/self/exe").parent_path(); }

struct Judged {
  int exit_code = -1;
  std::vector<Json> records;
};

// Runs tigon on the library; its prints are dropped.
Judged judge(const std::string& name, Cheat::Command command, const fs::path& folder) {
  const fs::path library = programs().parent_path() / "lib" / "cheats" / ("lib" + name + ".so");
  const fs::path records = folder / "records.jsonl";
  fs::remove(records);
  std::vector<std::string> words = {(programs() / "tigon").string(),
                                    command == Cheat::kCheck ? "check" : "bench",
                                    "--impl-from",
                                    library.string(),
                                    "--op=rms_norm",
                                    "--pass=forward",
                                    "--dtype=f32",
                                    "--timeout=20",
                                    "--json=" + records.string()};
  if (command == Cheat::kCheck)
    words.insert(words.end(), {"--tier=tiny", "--jobs=1", "--exclude=prop=", "--shrink=0"});
  else
    words.insert(words.end(), {"--axis=T=16", "--axis=H=512"});
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(127);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Judged judged;
  judged.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ifstream file(records);
  for (std::string line; std::getline(file, line);) {
    if (auto record = Json::try_parse(line)) judged.records.push_back(std::move(*record));
  }
  return judged;
}

std::string text_or_empty(const Json& record, const char* key) {
  return record.contains(key) && record[key].is_string() ? record[key].get<std::string>() : "";
}

bool is_expected(const std::string& expected, const Json& record) {
  const std::string verdict = text_or_empty(record, "verdict");
  if (expected == "slow")
    return verdict == "passed" && record["median_s"].is_number() &&
           record["median_s"].get<double>() >= kHonestSeconds;
  std::stringstream list(expected);
  for (std::string one; std::getline(list, one, '|');)
    if (one == verdict) return true;
  return false;
}

// Caught: an expected verdict shows, the exit code says so, and no record was forged.
Json outcome_of(const Cheat& cheat, const Judged& judged) {
  const char* kind = cheat.command == Cheat::kCheck ? "check" : "bench";
  const Json *shown = nullptr, *caught = nullptr;
  bool forged = false;
  for (const Json& record : judged.records) {
    if (text_or_empty(record, "record") != kind) continue;
    forged = forged || text_or_empty(record, "reason") == "forged";
    if (shown == nullptr) shown = &record;
    if (caught == nullptr && is_expected(cheat.expected, record)) caught = &record;
  }
  const bool slow = std::string(cheat.expected) == "slow";
  const bool right = caught != nullptr && !forged && (judged.exit_code == 0) == slow;
  const Json& record = caught != nullptr ? *caught : shown != nullptr ? *shown : Json();
  std::string reason = text_or_empty(record, "reason");
  if (slow && record.contains("median_s") && record["median_s"].is_number())
    reason = fmt::format("median {} s, the honest work takes {} s", record["median_s"].dump(),
                         kHonestSeconds);
  if (forged) reason = "a forged record is in the file";
  return {{"mutant", fmt::format("{}.{}", cheat.name, kind)},
          {"group", "cheat"},
          {"outcome", right ? "caught" : "survived"},
          {"verdict", text_or_empty(record, "verdict")},
          {"case_id", text_or_empty(record, "case_id")},
          {"reason", reason},
          {"expected", cheat.expected},
          {"defence", cheat.defence},
          {"exit_code", judged.exit_code}};
}

bool has_landlock() {
  constexpr long kCreateRuleset = 444, kVersionFlag = 1;  // linux/landlock.h
  return syscall(kCreateRuleset, nullptr, 0, kVersionFlag) >= 1;
}

// Without it a judge that fails everything would catch every cheat.
bool honest_passes(Cheat::Command command, const fs::path& folder) {
  const Judged judged = judge("honest", command, folder);
  const char* kind = command == Cheat::kCheck ? "check" : "bench";
  int passed = 0;
  for (const Json& record : judged.records) {
    if (text_or_empty(record, "record") != kind) continue;
    if (text_or_empty(record, "verdict") == "passed")
      ++passed;
    else if (text_or_empty(record, "verdict") != "unsupported")
      fmt::print(stderr, "the honest kernel failed {}: {}\n", text_or_empty(record, "case_id"),
                 record.dump());
  }
  return judged.exit_code == 0 && passed > 0;
}

int run(const std::vector<std::string>& names) {
  std::string pattern = (fs::temp_directory_path() / "tigon-cheats-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return 5;
  const fs::path folder = pattern;
  const bool honest = honest_passes(Cheat::kCheck, folder) && honest_passes(Cheat::kBench, folder);
  int caught = 0, all = 0, without_defence = 0;
  for (const Cheat& cheat : all_cheats()) {
    if (!names.empty() && std::find(names.begin(), names.end(), cheat.name) == names.end())
      continue;
    Json line = outcome_of(cheat, judge(cheat.name, cheat.command, folder));
    const bool defended = !cheat.needs_landlock || has_landlock();
    if (line["outcome"] == "survived" && !defended) {
      line["outcome"] = "not_applicable";
      line["reason"] = "needs Landlock, which this kernel lacks";
      ++without_defence;
    }
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
    caught += line["outcome"] == "caught";
    all += line["outcome"] != "not_applicable";
  }
  fs::remove_all(folder);
  fmt::print(stderr, "{} of {} cheats caught; the honest kernel {}\n", caught, all,
             honest ? "passes the same cases" : "FAILS");
  if (without_defence > 0)
    fmt::print(stderr, "{} more need Landlock, which this kernel lacks\n", without_defence);
  return caught == all && all > 0 && honest ? 0 : 1;
}

}  // namespace
}  // namespace tigon::plugin

int main(int argc, char** argv) { return tigon::plugin::run({argv + 1, argv + argc}); }
