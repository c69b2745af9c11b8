// SPDX-License-Identifier: Apache-2.0
// One reader for the three layouts, which are data.
#include "convergence/next_action/logs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <unordered_map>

#include "convergence/converge.h"

namespace tigon::convergence::next_action {
namespace {

struct Layout {
  const char* name;
  char separator;
  std::vector<std::string> columns;  // that the header begins with
  std::vector<size_t> learner;       // columns whose texts together name a learner
  size_t resource, time;
  size_t
      fewest;  // fields of a line: JODIE's lines end with features, OULAD's clicks may be left out
  bool daily = false;
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {"act-mooc", '\t', {"ACTIONID", "USERID", "TARGETID", "TIMESTAMP"}, {1}, 2, 3, 4},
      {"JODIE", ',', {"user_id", "item_id", "timestamp", "state_label"}, {0}, 1, 2, 4},
      {"JODIE", ',', {"", "u", "i", "ts", "label"}, {1}, 2, 3, 5},
      {"OULAD",
       ',',
       {"code_module", "code_presentation", "id_student", "id_site", "date"},
       {0, 1, 2},
       3,
       4,
       5,
       true},
  };
  return all;
}

// Fields without the quotes around them; a separator inside of quotes is text.
std::vector<std::string> fields_of(const std::string& line, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == separator && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : name_(file.string()), in_(file) {
    constexpr const char* kMark = "\xef\xbb\xbf";  // of UTF-8, as Excel writes it
    std::string header;
    if (!std::getline(in_, header)) throw ConvergeError(2, name_ + ": empty, or cannot be read");
    if (header.starts_with(kMark)) header.erase(0, 3);
    const auto begins = [&](const Layout& layout) {
      const std::vector<std::string> fields = fields_of(header, layout.separator);
      return fields.size() >= layout.columns.size() &&
             std::equal(layout.columns.begin(), layout.columns.end(), fields.begin());
    };
    const auto found = std::ranges::find_if(layouts(), begins);
    if (found == layouts().end()) throw ConvergeError(2, unknown_header());
    layout_ = &*found;
  }

  const Layout& layout() const { return *layout_; }

  // The fields of the next line that is not empty.
  std::optional<std::vector<std::string>> next() {
    std::string line;
    while (std::getline(in_, line)) {
      ++line_;
      if (line.find_first_not_of("\r ") == std::string::npos) continue;
      std::vector<std::string> fields = fields_of(line, layout_->separator);
      if (fields.size() < layout_->fewest)
        fail(fmt::format("{} fields; a line of {} has at least {}", fields.size(), layout_->name,
                         layout_->fewest));
      return fields;
    }
    return std::nullopt;
  }

  double time_of(const std::vector<std::string>& fields) const {
    const std::string& text = fields[layout_->time];
    double time = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(time))
      fail(fmt::format("the time '{}' is no number", text));
    return time;
  }

  std::string id_of(const std::vector<std::string>& fields,
                    const std::vector<size_t>& columns) const {
    std::string id;
    for (const size_t column : columns) {
      if (fields[column].empty()) fail(fmt::format("column {} is empty", column + 1));
      id += (id.empty() ? "" : "\t") + fields[column];
    }
    return id;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConvergeError(2, fmt::format("{} line {}: {}", name_, line_, what));
  }

  std::string unknown_header() const {
    std::vector<std::string> known;
    for (const Layout& layout : layouts())
      known.push_back(fmt::format("{} ({})", layout.name,
                                  fmt::join(layout.columns, layout.separator == ',' ? "," : " ")));
    return fmt::format("{} line 1: no header of a log of learners; known are {}", name_,
                       fmt::join(known, ", "));
  }

  std::string name_;
  std::ifstream in_;
  const Layout* layout_ = nullptr;
  int64_t line_ = 1;
};

struct Event {
  double time;
  size_t resource;
};

// Numbers texts in the order in which they first come.
class Numbering {
 public:
  size_t operator()(const std::string& text) {
    return numbers_.try_emplace(text, numbers_.size()).first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<std::string, size_t> numbers_;
};

}  // namespace

void require_log(const std::filesystem::path& file) { Reader reader(file); }

Log read_log(const std::filesystem::path& file) {
  Reader reader(file);
  const Layout& layout = reader.layout();
  Numbering learners, resources;
  std::vector<std::vector<Event>> events;
  while (const auto fields = reader.next()) {
    const size_t learner = learners(reader.id_of(*fields, layout.learner));
    if (learner == events.size()) events.emplace_back();
    events[learner].push_back(
        {reader.time_of(*fields), resources(reader.id_of(*fields, {layout.resource}))});
  }
  Log log;
  log.layout = layout.name;
  log.daily = layout.daily;
  std::vector<int32_t> number(resources.size(), -1);  // among those that are used
  for (std::vector<Event>& own : events) {
    if (own.size() < kFewestActions) {
      ++log.left_out;
      continue;
    }
    std::ranges::stable_sort(own, {}, &Event::time);
    Sequence sequence;
    for (const Event& e : own) {
      if (number[e.resource] < 0) number[e.resource] = log.vocabulary++;
      sequence.push_back(number[e.resource]);
    }
    log.learners.push_back(std::move(sequence));
  }
  return log;
}

}  // namespace tigon::convergence::next_action
