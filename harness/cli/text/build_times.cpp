// SPDX-License-Identifier: Apache-2.0
// .ninja_log: start, end, mtime, output, hash of the command, separated by tabs.
#include "harness/cli/text/build_times.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace tigon::cli {
namespace {

// "harness/CMakeFiles/tigon_cli.dir/cli/list.cpp.o" -> "harness/cli/commands/list.cpp (tigon_cli)"
std::string source_of(const std::string& object) {
  const std::string folders = "CMakeFiles/", generated = "__/host_sources/";
  const size_t start = object.find(folders), end = object.find(".dir/");
  if (start == std::string::npos || end == std::string::npos) return object;
  const std::string target = object.substr(start + folders.size(), end - start - folders.size());
  std::string source = object.substr(end + 5);
  source.resize(source.size() - 2);  // .o
  if (const size_t host = source.rfind(generated); host != std::string::npos) {
    source = source.substr(host + generated.size());
    if (source.ends_with(".cu.cpp")) source.resize(source.size() - 4);
  } else {
    source = object.substr(0, start) + source;
  }
  return source + " (" + target + ")";
}

// The outputs of the rules of a build.ninja.
std::set<std::string> outputs_of(const std::filesystem::path& manifest) {
  const std::string start = "build ";
  std::ifstream in(manifest);
  std::set<std::string> outputs;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(start))
      outputs.insert(
          line.substr(start.size(), line.find_first_of(": ", start.size()) - start.size()));
  return outputs;
}

}  // namespace

std::vector<BuildTime> build_times(const std::filesystem::path& build) {
  const std::filesystem::path log = build / ".ninja_log";
  std::ifstream in(log);
  if (!in) throw std::runtime_error(log.string() + " cannot be read; build first");
  const std::set<std::string> outputs = outputs_of(build / "build.ninja");
  std::map<std::string, double> seconds;
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    double start = 0, end = 0;
    std::string mtime, output;
    if (fields >> start >> end >> mtime >> output && outputs.contains(output) &&
        output.ends_with(".o"))
      seconds[output] = (end - start) / 1000;
  }
  std::vector<BuildTime> times;
  for (const auto& [output, time] : seconds) times.push_back({source_of(output), time});
  std::stable_sort(times.begin(), times.end(),
                   [](const BuildTime& a, const BuildTime& b) { return a.seconds > b.seconds; });
  return times;
}

}  // namespace tigon::cli
