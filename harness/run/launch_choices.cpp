// Launch tables as JSON.
#include "harness/run/launch_choices.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/judge/verdict.h"

namespace tigon {

namespace {
using Json = nlohmann::ordered_json;
}

LaunchFile read_launch_file(const std::string& path) {
  std::ifstream text(path);
  if (!text) throw UsageError(fmt::format("launch table {}: cannot be read", path));
  try {
    const Json j = Json::parse(text);
    LaunchFile file{j.at("machine"), j.at("date"), j.at("executor"), j.at("commit"), {}};
    for (const Json& e : j.at("entries"))
      file.entries.push_back({{e.at("table"), e.at("pieces")},
                              e.at("shape"),
                              e.at("case_id"),
                              e.at("before_s"),
                              e.at("after_s")});
    return file;
  } catch (const Json::exception& error) {
    throw UsageError(
        fmt::format("launch table {}: not written by ./tigon tune ({})", path, error.what()));
  }
}

void write_launch_file(const std::string& path, const LaunchFile& file) {
  Json j = {{"machine", file.machine},
            {"date", file.date},
            {"executor", file.executor},
            {"commit", file.commit},
            {"entries", Json::array()}};
  for (const LaunchEntry& e : file.entries)
    j["entries"].push_back({{"table", e.key.first},
                            {"pieces", e.key.second},
                            {"shape", e.shape},
                            {"case_id", e.case_id},
                            {"before_s", e.before_s},
                            {"after_s", e.after_s}});
  std::ofstream text(path);
  text << j.dump(2) << "\n";
  text.close();
  if (!text) throw std::runtime_error(fmt::format("cannot write {}", path));
}

void use_launch_file(const LaunchFile& file) {
  for (const LaunchEntry& e : file.entries) launch_table().choose(e.key, e.shape);
}

void use_launch_file_of_environment() {
  const char* path = std::getenv(kLaunchTableVariable);
  if (path != nullptr && *path != '\0') use_launch_file(read_launch_file(path));
}

}  // namespace tigon
