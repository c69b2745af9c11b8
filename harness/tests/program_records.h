// The records that a run of the program has left.
#pragma once
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "harness/json/json.h"
#include "harness/record/build_info.h"
#include "harness/tests/schema_check.h"

namespace tigon {

using Lines = std::vector<Json>;

inline Lines records_in(const std::filesystem::path& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

// "" where the lines follow record.schema.json, else the first record that does not, and why.
inline std::string schema_violation(const Lines& lines) {
  std::ifstream file(build_info().source_dir + "/harness/record/record.schema.json");
  const SchemaCheck schema(Json::parse(std::string(std::istreambuf_iterator<char>(file), {})));
  for (const auto& line : lines)
    if (const std::string found = schema.violation(line); !found.empty())
      return line["record"].get<std::string>() + found;
  return "";
}

inline std::set<std::string> kinds_of(const Lines& lines) {
  std::set<std::string> kinds;
  for (const auto& line : lines) kinds.insert(line["record"]);
  return kinds;
}

}  // namespace tigon
