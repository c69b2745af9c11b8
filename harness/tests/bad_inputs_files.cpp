// SPDX-License-Identifier: Apache-2.0
// The files that bad inputs name.
#include <fstream>
#include <functional>
#include <sstream>

#include "harness/record/record_reader.h"
#include "harness/run/check.h"
#include "harness/tests/bad_inputs.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::string flipped(std::string line) {
  line[line.size() / 2] ^= 1;
  return line;
}

// A record after a change, with a right checksum.
std::string changed(const std::string& line, const std::function<void(Json&)>& change) {
  Json record = Json::parse(line);
  record.erase("sum");
  change(record);
  return with_sum(record.dump()) + "\n";
}

}  // namespace

fs::path plugin_library(const std::string& name) {
  return tigon_program().parent_path().parent_path() / "lib" / "plugin_tests" /
         ("lib" + name + ".so");
}

BadFiles::BadFiles() {
  const fs::path run = folder_.path() / "run";
  const ProgramRun right = run_tigon({"check", "rope", "--impl", "fused", "--dtype", "f32",
                                      "--filter", "forward.*T=1,.*inputs=normal,seed=42$",
                                      "--executor", default_executor(), "--out", run.string()});
  std::vector<std::string> lines;
  std::istringstream text(text_of(run / "records.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  if (lines.size() < 2) throw std::runtime_error("the run that is right failed: " + right.err);
  write("empty.jsonl", "");
  write("garbage.jsonl", "this is no record\n");
  write("zeros.jsonl", std::string(5000, '\0'));
  write("torn.jsonl", lines.at(0).substr(0, 100));
  write("deep.jsonl", std::string(100000, '[') + "\n");
  write("array.jsonl", "[1,2,3]\n");
  write("headless.jsonl", lines.at(1) + "\n");
  write("flipped.jsonl", flipped(lines.at(0)) + "\n");
  write("no_hash.jsonl", changed(lines.at(0), [](Json& r) { r["build"].erase("hash"); }));
  write("other_build.jsonl",
        changed(lines.at(0), [](Json& r) { r["build"]["hash"] = "0123456789abcdef"; }));
  write("wrong_types.jsonl", changed(lines.at(0), [](Json& r) { r["build"] = {1, 2}; }));
  write("no_command.jsonl", changed(lines.at(0), [](Json& r) { r.erase("command"); }));
  write("command_of_numbers.jsonl", changed(lines.at(0), [](Json& r) {
          r["command"] = {1, 2, 3};
        }));
  write("other_filter.jsonl",
        changed(lines.at(0), [](Json& r) { r["environment"]["TIGON_FILTER"] = "x"; }));
  write("empty.txt", "");
  write("short.txt", "a b");
  write("cut_off.so", text_of(plugin_library("bad_plugin")).substr(0, 2000));
  fs::create_directories(folder_.path() / "empty_folder");
}

std::map<std::string, std::string> BadFiles::contents() const {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
    all[entry.path().string()] = entry.is_regular_file() ? text_of(entry.path()) : "";
  return all;
}

void BadFiles::write(const char* name, const std::string& text) {
  std::ofstream(folder_.path() / name, std::ios::binary) << text;
}

}  // namespace tigon
