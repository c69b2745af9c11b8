// SPDX-License-Identifier: Apache-2.0
// Launch tables as files of tab-separated columns.
#include "kernels/device/launch_file.h"

#include <charconv>
#include <fstream>
#include <map>
#include <string_view>

namespace tigon {

namespace {

constexpr const char* kColumns[] = {"device",  "date",    "executor", "commit",        "table",
                                    "size",    "lanes",   "vectors",  "blocks_per_sm", "stages",
                                    "cluster", "case_id", "before_s", "after_s"};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t to; (to = line.find('\t', from)) != std::string::npos; from = to + 1)
    parts.push_back(line.substr(from, to - from));
  parts.push_back(line.substr(from));
  return parts;
}

std::string join(const auto& parts) {
  std::string line;
  for (const auto& part : parts) {
    if (!line.empty()) line += '\t';
    line += part;
  }
  return line;
}

// A file of columns under a line of names, read row by row.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), text_(path) {
    if (!text_) throw LaunchFileError(path + ": cannot be read");
    if (!next_line()) fail("is empty; ./tigon tune writes launch tables");
    for (size_t i = 0; i < parts_.size(); ++i) column_[parts_[i]] = i;
    for (const char* name : kColumns)
      if (column_.count(name) == 0)
        fail("has no column \"" + std::string(name) + "\"; ./tigon tune writes launch tables");
    names_ = parts_.size();
  }

  bool next_row() {
    if (!next_line()) return false;
    if (parts_.size() != names_)
      fail("has " + std::to_string(parts_.size()) + " columns, not " + std::to_string(names_));
    return true;
  }

  const std::string& text(const char* column) const { return parts_[column_.at(column)]; }

  template <class Number>
  Number number(const char* column, Number least) const {
    const std::string& s = text(column);
    Number value{};
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (error != std::errc{} || end != s.data() + s.size() || !(value >= least))
      fail("column \"" + std::string(column) + "\" is \"" + s + "\", not a number of at least " +
           std::to_string(least));
    return value;
  }

 private:
  bool next_line() {
    std::string line;
    do {
      if (!std::getline(text_, line)) return false;
      ++line_;
    } while (line.empty());
    parts_ = split(line);
    return true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw LaunchFileError(path_ + ":" + std::to_string(line_) + ": " + what);
  }

  std::string path_;
  std::ifstream text_;
  int line_ = 0;
  size_t names_ = 0;
  std::map<std::string, size_t> column_;
  std::vector<std::string> parts_;
};

LaunchEntry entry_of(const Reader& r) {
  return {r.text("device"),
          r.text("date"),
          r.text("executor"),
          r.text("commit"),
          {r.text("table"), r.number<int64_t>("size", 0)},
          {r.number("lanes", 1), r.number("vectors", 0), r.number("blocks_per_sm", 1),
           r.number("stages", 1), r.number("cluster", 1)},
          r.text("case_id"),
          r.number("before_s", 0.0),
          r.number("after_s", 0.0)};
}

std::string exact(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::vector<LaunchEntry> read_launch_file(const std::string& path) {
  Reader reader(path);
  std::vector<LaunchEntry> entries;
  while (reader.next_row()) entries.push_back(entry_of(reader));
  return entries;
}

void write_launch_file(const std::string& path, const std::vector<LaunchEntry>& entries) {
  std::ofstream text(path);
  text << join(kColumns) << "\n";
  for (const LaunchEntry& e : entries) {
    const LaunchShape& s = e.shape;
    text << join(std::vector<std::string>{
                e.device, e.date, e.executor, e.commit, e.key.first, std::to_string(e.key.second),
                std::to_string(s.lanes), std::to_string(s.vectors), std::to_string(s.blocks_per_sm),
                std::to_string(s.stages), std::to_string(s.cluster), e.case_id, exact(e.before_s),
                exact(e.after_s)})
         << "\n";
  }
  text.close();
  if (!text) throw LaunchFileError("cannot write " + path);
}

void use_launch_entries(const std::vector<LaunchEntry>& entries) {
  for (const LaunchEntry& e : entries) launch_table().choose(e.device, e.key, e.shape);
}

}  // namespace tigon
