// SPDX-License-Identifier: Apache-2.0
// What the terminal says about a failing case.
#include "harness/cli/text/failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "harness/cli/text/terminal.h"
#include "harness/judge/compare.h"
#include "harness/run/memory/headroom.h"

namespace tigon::cli {
namespace {

std::string head(const CheckResult& r) {
  return fmt::format("{} {}: {}", colored("FAIL", Color::kRed), case_id(r.c), name_of(r.verdict));
}

// "y[0,126]: got 0.5 want 0.7, error 52000 of its budget"
std::string element(const OutputResult& o, const std::vector<int64_t>& index, double got,
                    double want, double error) {
  const std::string place =
      fmt::format("{}[{}]: got {:.9g} want {:.9g}", o.name, fmt::join(index, ","), got, want);
  return std::isfinite(error) ? fmt::format("{}, error {:.3g} of its budget", place, error) : place;
}

std::string worst(const OutputResult& o) {
  return element(o, o.worst_index, o.got, o.want, o.error_over_budget);
}

std::string output_lines(const OutputResult& o) {
  if (o.failing == 0) return fmt::format("\n  {}: right", o.name);
  std::string text =
      fmt::format("\n  {}: {} of {} elements wrong, bias {:+.3g} sigma{}{}", o.name, o.failing,
                  o.elements, o.bias, o.pattern.empty() ? "" : "; ", o.pattern);
  if (o.first_index != o.worst_index)
    text += "\n    first " + element(o, o.first_index, o.first_got, o.first_want, o.first_error);
  return text + "\n    worst " + worst(o) + beside(o);
}

// The reason of a case in short: the worst element of its first wrong output, where there is one.
std::string reason_of(const CheckResult& r) {
  for (const OutputResult& o : r.outputs)
    if (o.failing > 0) return worst(o);
  return r.reason;
}

bool has_wrong_elements(const CheckResult& r) {
  for (const OutputResult& o : r.outputs)
    if (o.failing > 0) return true;
  return false;
}

std::string smallest_lines(const CheckResult& r, const Diagnosis& d) {
  const Shrunk& s = d.shrunk;
  std::string text =
      fmt::format("\n  smallest found ({} tries, {}{}): {}", s.tries, show_seconds(d.seconds),
                  s.finished ? "" : ", time ran out", reason_of(d.smallest));
  if (s.finished && !s.needs.empty())
    text += fmt::format("\n    passes without {}", fmt::join(s.needs, ", without "));
  std::string repro = r.repro;
  const std::string id = case_id(r.c);
  if (const size_t at = repro.find(id); at != std::string::npos)
    repro.replace(at, id.size(), case_id(s.smallest));
  return text + "\n    repro: " + repro;
}

}  // namespace

std::string failure_line(const CheckResult& r) {
  return fmt::format("{}: {}{}\n  repro: {}", head(r), r.reason, naive_text(r), r.repro);
}

std::string failure_lines(const CheckResult& r, const Diagnosis& d) {
  std::string text = head(r);
  if (has_wrong_elements(r)) {
    for (const OutputResult& o : r.outputs) text += output_lines(o);
    text += naive_text(r).empty() ? "" : "\n  " + naive_text(r).substr(2);
  } else {
    text += ": " + r.reason;
  }
  if (!d.facts.empty()) text += fmt::format("\n  {}", fmt::join(d.facts, "\n  "));
  text += "\n  repro: " + r.repro;
  if (case_id(d.shrunk.smallest) != case_id(r.c)) text += smallest_lines(r, d);
  return text;
}

}  // namespace tigon::cli
