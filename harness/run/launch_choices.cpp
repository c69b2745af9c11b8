// Launch tables as JSON.
#include "harness/run/launch_choices.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "harness/json/json.h"
#include "harness/judge/verdict.h"

namespace tigon {

namespace {

Json to_json(const LaunchShape& s) {
  return {{"lanes", s.lanes},
          {"vectors", s.vectors},
          {"blocks_per_sm", s.blocks_per_sm},
          {"stages", s.stages},
          {"cluster", s.cluster}};
}

LaunchShape shape_of(const Json& j) {
  return {j.at("lanes"), j.at("vectors"), j.at("blocks_per_sm"), j.at("stages"), j.at("cluster")};
}

}  // namespace

std::string describe(const LaunchShape& s) {
  std::string text = fmt::format("{} lanes", s.lanes);
  if (s.vectors > 0) text += fmt::format(" x {}", s.vectors);
  text += fmt::format(", {}/SM", s.blocks_per_sm);
  if (s.stages > 1) text += fmt::format(", {} stages", s.stages);
  if (s.cluster > 1) text += fmt::format(", cluster {}", s.cluster);
  return text;
}

LaunchFile read_launch_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw UsageError(fmt::format("launch table {}: cannot be read", path));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  try {
    const Json j = Json::parse(text);
    LaunchFile file{j.at("machine"), j.at("date"), j.at("executor"), j.at("commit"), {}};
    for (const Json& e : j.at("entries"))
      file.entries.push_back({{e.at("table"), e.at("row")},
                              shape_of(e.at("shape")),
                              e.at("case_id"),
                              e.at("before_s"),
                              e.at("after_s")});
    return file;
  } catch (const Json::Error& error) {
    throw UsageError(
        fmt::format("launch table {}: not as ./tigon tune writes it; make a new one with it ({})",
                    path, error.what()));
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
                            {"row", e.key.second},
                            {"shape", to_json(e.shape)},
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
