// SPDX-License-Identifier: Apache-2.0
// One line per record, one table per size.
#include "harness/cli/text/parts_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

constexpr size_t kNameWidth = 22, kLeastWidth = 12;

int64_t axis(const Json& r, const char* name) { return r.at("axes").at(name).get<int64_t>(); }
bool is_measured(const Json& r) { return r.at("outcome") == "measured"; }
bool is_on_gpu(const Json& r) { return r.at("executor") == "cuda"; }

std::string milliseconds(const Json& seconds) {
  return seconds.is_number() ? fmt::format("{:.3f}", seconds.get<double>() * 1e3) : "-";
}

std::string bytes(const Json& number) {
  return number.is_number() ? show_bytes(number.get<double>()) : "-";
}

std::string options(const Json& r) {
  std::string text;
  for (const auto& [name, value] : r.at("options").items())
    text += fmt::format(", {}={}", name, value.dump());
  return text;
}

const Json* part_of(const Json& record, const std::string& name) {
  const Json& parts = record.at("parts");
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const Json& p) { return p.at("part") == name; });
  return found == parts.end() ? nullptr : &*found;
}

// Of the linear layers: their rate, and the time of the same products alone over theirs. Nothing
// in records of older programs.
std::string linear_rate(const Json& r) {
  const Json flop = r.value("linear_flop", Json()), *linear = part_of(r, "linear");
  if (!flop.is_number() || linear == nullptr || !is_measured(r)) return "-";
  return fmt::format("{:.4g}", flop.get<double>() / linear->at("seconds_s").get<double>() / 1e12);
}
std::string linear_share(const Json& r) {
  const Json alone = r.value("linear_alone_s", Json()), *linear = part_of(r, "linear");
  if (!alone.is_number() || linear == nullptr || !is_measured(r)) return "-";
  return fmt::format("{:.1f}%", 100 * alone.get<double>() / linear->at("seconds_s").get<double>());
}

class Table {
 public:
  explicit Table(const std::vector<Json>& records) : records_(records) {}

  using Cell = std::function<std::string(const Json&)>;
  void row(const std::string& name, const Cell& cell) const {
    std::string line = fmt::format("{:<{}}", name, kNameWidth);
    for (const Json& r : records_)
      line += fmt::format("  {:>{}}", cell(r), std::max(kLeastWidth, text_of(r, "impl").size()));
    fmt::print("{}\n", line);
  }
  // A row for each part of which some record has `key` above 0.
  void rows(const char* key, std::string (*show)(const Json&)) const {
    const Json& parts = records_.front().at("parts");
    for (const Json& part : parts) {
      const std::string name = part.at("part");
      const auto value = [&](const Json& r) -> Json {
        const Json* own = part_of(r, name);
        return own == nullptr ? Json() : own->at(key);
      };
      const bool any = std::any_of(records_.begin(), records_.end(), [&](const Json& r) {
        const Json v = value(r);
        return v.is_number() && v.get<double>() > 0;
      });
      if (any) row("  " + name, [&](const Json& r) { return show(value(r)); });
    }
  }

 private:
  const std::vector<Json>& records_;
};

void print_times(const Table& table, bool gpu) {
  fmt::print("{}\n", gpu ? "time, ms (CUDA events)"
                         : "time, ms of the host executor: not the speed of a kernel");
  table.rows("seconds_s", milliseconds);
  table.row("  whole step", [](const Json& r) { return milliseconds(r.at("step_s")); });
  table.row("  parts of it", [](const Json& r) {
    return is_measured(r) ? fmt::format("{:.1f}%", 100 * r.at("coverage").get<double>()) : "-";
  });
  table.row(gpu ? "linear, TFLOP/s" : "linear, TFLOP/s (host)", linear_rate);
  table.row("  of its rate alone", linear_share);
  table.row(gpu ? "tokens/s" : "tokens/s (host)", [](const Json& r) {
    return is_measured(r) ? fmt::format("{:.0f}", r.at("tokens_per_s").get<double>()) : "-";
  });
}

void print_memory(const Table& table) {
  fmt::print("memory at the step's peak\n");
  table.rows("bytes", bytes);
  table.row("  unused in the arena", [](const Json& r) { return bytes(r.at("unused_bytes")); });
  table.row("peak, measured", [](const Json& r) { return bytes(r.at("peak_bytes")); });
  table.row("peak, planned", [](const Json& r) { return bytes(r.at("planned_bytes")); });
}

}  // namespace

std::string parts_line(const Json& r) {
  std::string line =
      fmt::format("{} {} {} T={} V={}: ", text_of(r, "config"), text_of(r, "dtype"),
                  text_of(r, "impl"), axis(r, kSequenceAxis), axis(r, kVocabularyAxis));
  if (is_measured(r))
    line += fmt::format("step {} ms{}, {:.1f}% of it in parts, peak {}, planned {}",
                        milliseconds(r.at("step_s")), is_on_gpu(r) ? "" : " (host executor)",
                        100 * r.at("coverage").get<double>(), bytes(r.at("peak_bytes")),
                        bytes(r.at("planned_bytes"))) +
            (is_on_gpu(r) ? "; steps: " + r.value("launches", "") : "");
  else if (r.at("outcome") == "planned")
    line += fmt::format("planned {}, not run", bytes(r.at("planned_bytes")));
  else
    line += "out of memory";
  return text_of(r, "reason").empty() ? line : line + ": " + text_of(r, "reason");
}

void print_parts(const std::vector<Json>& records) {
  if (records.empty()) return;
  const Json& first = records.front();
  const Table table(records);
  fmt::print("\n{} {}, {} x {} tokens, V={}{}\n", text_of(first, "config"), text_of(first, "dtype"),
             first.at("batch").get<int>(), axis(first, kSequenceAxis), axis(first, kVocabularyAxis),
             options(first));
  if (const std::string by = first.value("attention", ""); !by.empty())
    fmt::print("attention by {}, on all sides\n", by);
  table.row("part", [](const Json& r) { return text_of(r, "impl"); });
  if (std::any_of(records.begin(), records.end(), is_measured))
    print_times(table, is_on_gpu(first));
  print_memory(table);
  table.row("outcome", [](const Json& r) { return text_of(r, "outcome"); });
  fmt::print("\n");
}

}  // namespace tigon::cli
