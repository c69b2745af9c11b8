// SPDX-License-Identifier: Apache-2.0
// Running the programs of other groups.
#include "harness/mutants/external.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "harness/json/json.h"
#include "harness/judge/verdict.h"
#include "harness/run/check.h"

namespace tigon {

namespace {

ExternalResult result_of(const ExternalGroup& group, const std::string& line) {
  ExternalResult r{.group = group.name};
  try {
    const auto j = Json::parse(line);
    if (j.contains("outcome")) {
      r.name = j.at("mutant");
      r.what = j.at("defence");
      r.caught = j.at("outcome") == "caught";
      r.applies = j.at("outcome") != "not_applicable";
      r.by = j.at("reason");
      r.verdict = j.at("verdict");
      r.case_id = j.at("case_id");
    } else {
      r.name = j.at("name");
      r.what = j.at("what");
      r.caught = j.at("caught");
      r.by = fmt::format("{}", fmt::join(j.at("by").get<std::vector<std::string>>(), ", "));
    }
    return r;
  } catch (const Json::Error&) {
    return {.group = group.name,
            .name = "program",
            .what = "prints one JSON line per fault",
            .by = fmt::format("{} printed: {}", group.program, line)};
  }
}

// Calls f for every whole line; returns what is left without a line's end.
template <class F>
std::string for_each_line(FILE* file, F f) {
  std::string line;
  for (int ch; (ch = std::getc(file)) != EOF;) {
    if (ch != '\n') {
      line.push_back(static_cast<char>(ch));
      continue;
    }
    f(line);
    line.clear();
  }
  return line;
}

}  // namespace

const std::vector<ExternalGroup>& external_groups() {
  static const std::vector<ExternalGroup> groups = {{"comparator", "judge_faults"},
                                                    {"cheat", "tigon-cheats"}};
  return groups;
}

std::string external_program(const ExternalGroup& group) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / group.program;
  return access(program.c_str(), X_OK) == 0 ? program.string() : "";
}

void run_external(const ExternalGroup& group, const ExternalSink& sink) {
  const std::string program = external_program(group);
  FILE* lines = popen(fmt::format("'{}' 2>/dev/null", program).c_str(), "re");
  if (lines == nullptr) throw std::runtime_error("cannot start " + program);
  int faults = 0, missed = 0;
  const std::string rest = for_each_line(lines, [&](const std::string& line) {
    const ExternalResult result = result_of(group, line);
    ++faults;
    missed += result.applies && !result.caught;
    sink(result);
  });
  const int status = pclose(lines);
  const bool ended_well = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || missed > 0);
  if (interrupted() || (faults > 0 && rest.empty() && ended_well)) return;
  sink({.group = group.name,
        .name = "program",
        .what = "runs to its end",
        .by = fmt::format("{} printed {} faults and ended with status {}", group.program, faults,
                          status)});
}

Json to_json(const ExternalResult& r) {
  Json record = {{"mutant", r.name},
                 {"what", r.what},
                 {"catalogue", 0},
                 {"group", r.group},
                 {"outcome", !r.applies ? "not_applicable"
                             : r.caught ? "caught"
                                        : "survived"},
                 {"reason", r.by}};
  if (!r.verdict.empty()) record["verdict"] = r.verdict;
  if (!r.case_id.empty()) record["case_id"] = r.case_id;
  return record;
}

}  // namespace tigon
