// SPDX-License-Identifier: Apache-2.0
// Numbers of the next-action experiment as fields and as text.
#include "harness/cli/text/next_action_lines.h"

#include <fmt/format.h>

#include "convergence/next_action/report.h"
#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

namespace na = convergence::next_action;

void add_estimate(Json& fields, const std::string& name, const na::Estimate& e) {
  fields[name] = e.value;
  fields[name + "_low"] = e.low;
  fields[name + "_high"] = e.high;
}

// "76.2% (75.1 to 77.3)", "-" where there is none.
std::string estimate_text(const Json& r, const std::string& name) {
  const auto percent = [&](const std::string& key) { return 100 * r.at(key).get<double>(); };
  if (!r.at(name).is_number()) return "-";
  return fmt::format("{:.1f}% ({:.1f} to {:.1f})", percent(name), percent(name + "_low"),
                     percent(name + "_high"));
}

constexpr const char* kPredictorRow = "{:<12} {:<22} {:<24} {:>10} {:>9}  {}";

}  // namespace

Json fields_of(const na::PredictorReport& r) {
  Json fields = {{"predictor", r.predictor}, {"data", r.data},
                 {"published", r.published}, {"parameters", r.parameters},
                 {"seconds_s", r.seconds_s}, {"seed", r.seed},
                 {"reason", r.reason}};
  add_estimate(fields, "top1", r.top1);
  add_estimate(fields, "top10", r.top10);
  return fields;
}

Json fields_of(const na::GapReport& r) {
  Json fields = {{"better", r.better},
                 {"worse", r.worse},
                 {"wanted", na::name_of(r.wanted)},
                 {"seed", r.seed},
                 {"holds", r.holds()}};
  add_estimate(fields, "top1", r.top1);
  return fields;
}

// A row of the table of predictors.
std::string predictor_line(const Json& r) {
  const auto parameters = r["parameters"].get<int64_t>();
  const double seconds = r["seconds_s"];
  return fmt::format(kPredictorRow, text_of(r, "predictor"), estimate_text(r, "top1"),
                     estimate_text(r, "top10"), parameters > 0 ? fmt::to_string(parameters) : "-",
                     seconds > 0 ? show_seconds(seconds) : "-", text_of(r, "reason"));
}

std::string predictor_head() {
  return fmt::format(kPredictorRow, "predictor", "top-1 (95% by learner)", "top-10", "parameters",
                     "time", "");
}

std::string gap_line(const Json& r) {
  const bool holds = r["holds"];
  const auto points = [&](const char* key) { return 100 * r.at(key).get<double>(); };
  return fmt::format(
      "{} - {}: {:+.2f} points ({:+.2f} to {:+.2f}), {}: {}", text_of(r, "better"),
      text_of(r, "worse"), points("top1"), points("top1_low"), points("top1_high"),
      text_of(r, "wanted"),
      colored(holds ? "holds" : "does not hold", holds ? Color::kGreen : Color::kRed));
}

}  // namespace tigon::cli
