// SPDX-License-Identifier: Apache-2.0
// The records that a run of the program has left.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "harness/json/json.h"
#include "harness/record/build_info.h"
#include "harness/tests/temporary_folder.h"

namespace tigon {

using Lines = std::vector<Json>;

inline Lines records_in(const std::filesystem::path& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

// "" where the lines follow record.schema.json, else the first record that does not, and why. The
// one check of it is Python's, which the standard library suffices for.
inline std::string schema_violation(const Lines& lines) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "records.jsonl").string();
  std::ofstream file(path);
  for (const Json& line : lines) file << line.dump() << '\n';
  file.close();
  FILE* check = popen(fmt::format("PYTHONPATH='{}/reports' exec \"${{TIGON_PYTHON:-python3}}\" -m "
                                  "tigon_report.schema '{}' 2>&1",
                                  build_info().source_dir, path)
                          .c_str(),
                      "r");
  std::string said;
  for (int c = 0; check != nullptr && (c = std::fgetc(check)) != EOF;) said += static_cast<char>(c);
  if (check == nullptr || (pclose(check) != 0) == said.empty()) said += "the check did not run";
  return said;
}

inline std::set<std::string> kinds_of(const Lines& lines) {
  std::set<std::string> kinds;
  for (const auto& line : lines) kinds.insert(line["record"]);
  return kinds;
}

}  // namespace tigon
