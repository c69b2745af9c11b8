// SPDX-License-Identifier: Apache-2.0
// --resume RUN.
#include "harness/cli/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/commands/converge_options.h"
#include "harness/record/declaration.h"
#include "harness/record/environment.h"
#include "harness/record/record_reader.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

// The records file of a path or of a run's name.
std::filesystem::path find_records(const std::string& run) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const fs::path& path : {fs::path(run), fs::path("results") / run}) {
    const fs::path file = fs::is_directory(path, ignored) ? path / "records.jsonl" : path;
    if (fs::is_regular_file(file, ignored)) return file;
  }
  throw MissingData(fmt::format(
      "--resume {}: no such run; name a results folder with a records.jsonl, see ls results/",
      run));
}

// A string member, empty when there is none.
std::string text(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

// What names a record of a kind that has these fields; nothing for a kind that may repeat.
std::optional<std::string> key_of(const std::string& kind, const Json& fields) {
  const auto identity = identity_of(kind);
  if (!identity) return std::nullopt;
  std::string key = kind;
  for (const std::string& name : *identity) key += "\n" + fields[name].dump();
  return key;
}

// What chooses cases without being on the command line.
Json selection_of(const Json& environment) {
  Json chosen = Json::object();
  for (const char* name : {"TIGON_FILTER", "TIGON_EXCLUDE", "GTEST_TOTAL_SHARDS",
                           "GTEST_SHARD_INDEX", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"})
    chosen[name] = text(environment, name);
  return chosen;
}

void require_same(const std::filesystem::path& path, const Json& run) {
  const auto member = [&](const char* key) { return run.contains(key) ? run.at(key) : Json(); };
  const std::string then = text(member("build"), "hash"), now = build_block()["hash"];
  if (then != now)
    throw UsageError(
        fmt::format("--resume: {} was made by another build ({}, this one is {}); start a new run",
                    path.string(), then.empty() ? "without a hash" : then, now));
  const Json here = selection_of(environment_block()), there = selection_of(member("environment"));
  for (const auto& [name, value] : there.items())
    if (here[name] != value)
      throw UsageError(fmt::format("--resume: {} was made with {}='{}'; set it the same",
                                   path.string(), name, value.get<std::string>()));
}

}  // namespace

Resumed::Resumed(const std::string& run) : path_(find_records(run)) {
  RecordFile file = read_records(path_);
  damaged_ = file.damaged;
  bytes_ = file.bytes;
  records_ = std::move(file.records);
  if (records_.empty() || text(records_[0], "record") != "run")
    throw MissingData(fmt::format(
        "--resume: {} does not begin with the record of its run; start a new one", path_.string()));
  run_ = records_[0];
  run_id_ = text(run_, "run_id");
  require_same(path_, run_);
  const auto command = run_.find("command");
  if (run_id_.empty() || command == run_.end() || !command->is_array() || command->size() < 2 ||
      !std::all_of(command->begin(), command->end(), [](const Json& w) { return w.is_string(); }))
    throw MissingData(
        fmt::format("--resume: {} does not say its command; start a new run", path_.string()));
  for (size_t i = 1; i < command->size(); ++i) words_.push_back((*command)[i].get<std::string>());
  for (size_t i = 0; i < records_.size(); ++i)
    if (const auto key = key_of(text(records_[i], "record"), records_[i]);
        key && text(records_[i], "run_id") == run_id_)
      index_[*key] = i;
}

const Json* Resumed::find(const std::string& kind, const Json& fields) const {
  const auto found = index_.find(key_of(kind, fields).value());
  return found == index_.end() ? nullptr : &records_[found->second];
}

std::vector<const Json*> Resumed::all(const std::string& kind) const {
  std::vector<const Json*> found;
  for (const auto& record : records_)
    if (text(record, "record") == kind && find(kind, record) == &record) found.push_back(&record);
  return found;
}

std::optional<Resumed> resumed_run(const std::vector<std::string>& words,
                                   const std::vector<std::string>& commands) {
  const std::string with_value = std::string(kResume) + "=";
  const auto flag = std::find_if(words.begin(), words.end(), [&](const std::string& word) {
    return word == kResume || word.rfind(with_value, 0) == 0;
  });
  if (flag == words.end() || words.size() < 2) return std::nullopt;
  for (const char* help : {"-h", "--help"})
    if (std::find(words.begin(), words.end(), help) != words.end()) return std::nullopt;
  const std::string& command = words[0];
  if (std::find(commands.begin(), commands.end(), command) == commands.end())
    throw UsageError(fmt::format("{}: only {} can be continued with {}", command,
                                 fmt::join(commands, ", "), kResume));
  const bool apart = *flag == kResume;
  if (flag != words.begin() + 1 || words.size() != (apart ? 3u : 2u))
    throw UsageError(fmt::format(
        "{} goes on with the options of its run: write ./tigon {} {} RUN and nothing else", kResume,
        command, kResume));
  Resumed run(apart ? words[2] : flag->substr(with_value.size()));
  for (const std::string& word : run.words())
    if (word.rfind("--impl-from", 0) == 0)
      throw UsageError(
          fmt::format("{} {}: a run over a plug-in library cannot be continued; start a new run",
                      kResume, run.path().string()));
  if (run.words()[0] != command)
    throw UsageError(fmt::format("{} was made by ./tigon {}; write ./tigon {} {} RUN",
                                 run.path().string(), run.words()[0], run.words()[0], kResume));
  return run;
}

}  // namespace tigon::cli
