// SPDX-License-Identifier: Apache-2.0
// What a check met of the kernels, as text.
#include "harness/cli/text/coverage_table.h"

#include <fmt/format.h>

#include <map>
#include <string>

namespace tigon::cli {
namespace {

constexpr size_t kMostMissing = 20;  // of a file that are printed; the records have all

void print_some(const char* what, const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size() && i <= kMostMissing; ++i)
    fmt::print("{}\n", i < kMostMissing
                           ? fmt::format("{}: {}", what, names[i])
                           : fmt::format("... and {} more", names.size() - kMostMissing));
}

}  // namespace

void print_coverage(const std::vector<Coverage::Row>& rows) {
  fmt::print("{:<48} {:>17} {:>6} {:>14} {:>10}\n", "file", "kernels launched", "paths",
             "pairs met", "ruled out");
  std::map<std::string, size_t> rules;
  for (const Coverage::Row& r : rows) {
    size_t ruled_out = 0;
    for (const auto& [rule, pairs] : r.ruled_out) {
      rules[rule] += pairs.size();
      ruled_out += pairs.size();
    }
    fmt::print("{:<48} {:>9} of {:>4} {:>6} {:>6} of {:>4} {:>10}\n", r.file,
               r.kernels - r.missing.size(), r.kernels, r.paths, r.met, r.pairs, ruled_out);
  }
  for (const auto& [rule, pairs] : rules) fmt::print("ruled out, {}: {}\n", rule, pairs);
  for (const Coverage::Row& r : rows) {
    print_some("not launched", r.missing);
    print_some("not met", r.open);
  }
}

}  // namespace tigon::cli
