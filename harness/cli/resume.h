// SPDX-License-Identifier: Apache-2.0
// --resume RUN: what an interrupted run has sealed so far, and the words that go on with it.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/record_writer.h"

namespace tigon::cli {

// A run that is continued: in its own file, under its own name, with its own options. Its sealed
// records stand; a case whose line is torn or damaged runs again.
class Resumed {
 public:
  // Reads `run`: a results folder, a records file or the name of a run below results/. Throws
  // MissingData (no such run, no run record), UsageError (made by another build or with another
  // environment) and RecordError (cannot be read).
  explicit Resumed(const std::string& run);

  const std::filesystem::path& path() const { return path_; }
  const std::string& run_id() const { return run_id_; }
  const Json& run() const { return run_; }
  // The words of its command line behind the program's name.
  const std::vector<std::string>& words() const { return words_; }
  size_t damaged_lines() const { return damaged_; }
  // Of its file, when it was read.
  uintmax_t bytes() const { return bytes_; }

  // The last record of a kind with these values of the fields that name it (identity_of), or null.
  const Json* find(const std::string& kind, const Json& fields) const;
  // The records of a kind that has an identity, in file order, the last one of each.
  std::vector<const Json*> all(const std::string& kind) const;

 private:
  std::filesystem::path path_;
  std::string run_id_;
  Json run_;
  std::vector<std::string> words_;
  std::vector<Json> records_;
  std::map<std::string, size_t> index_;  // kind and identity -> the last such record
  size_t damaged_ = 0;
  uintmax_t bytes_ = 0;
};

inline constexpr const char* kResume = "--resume";

// The run that `words` ("check --resume RUN") continue; nothing when --resume is not among them.
// Throws UsageError when it is not alone with one of `commands`, and what Resumed throws.
std::optional<Resumed> resumed_run(const std::vector<std::string>& words,
                                   const std::vector<std::string>& commands);

}  // namespace tigon::cli
