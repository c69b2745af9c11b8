// SPDX-License-Identifier: Apache-2.0
// Records of trainings back to reports.
#include <limits>
#include <optional>

#include "harness/cli/text/converge_events.h"

namespace tigon::cli {
namespace {

namespace cv = convergence;

double number(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// Nothing when it is of a training that ended early.
std::optional<cv::RunReport> report_of(const Json& r, cv::Side side) {
  if (!r.value("complete", false)) return std::nullopt;
  cv::RunReport report;
  report.config = r.at("config");
  report.dtype = *parse_dtype(r.at("dtype").get<std::string>());
  report.side = side;
  report.twin = r.at("twin");
  report.learning_rate = r.value("learning_rate", 0.0);
  report.steps = r.at("steps");
  report.complete = true;
  report.parameters = r.at("parameters");
  report.vocabulary = r.at("vocabulary");
  report.tokenizer_entries = r.at("tokenizer_entries");
  report.tokens_per_step = r.at("tokens_per_step");
  report.data = r.at("data");
  for (const Json& loss : r.at("loss")) report.loss.push_back(number(loss));
  for (const Json& norm : r.value("grad_norm", Json::array()))
    report.grad_norm.push_back(number(norm));
  report.final_loss = number(r.at("final_loss"));
  report.held_out_loss = number(r.at("held_out_loss"));
  report.peak_bytes = r.at("peak_bytes");
  report.planned_bytes = r.at("planned_bytes");
  report.tokens_per_s = number(r.at("tokens_per_s"));
  report.seconds_s = number(r.at("seconds_s"));
  report.seed = r.at("seed");
  report.executor = r.at("executor");
  report.attention = r.value("attention", "");
  report.launches = r.value("launches", "");
  return report;
}

}  // namespace

std::vector<cv::RunReport> finished_runs(const Session& session, const std::string& config) {
  std::vector<cv::RunReport> finished;
  if (session.resumed() == nullptr) return finished;
  for (const Json* record : session.resumed()->all("converge"))
    for (const cv::Side side : {cv::Side::kNaive, cv::Side::kFused, cv::Side::kNoise})
      if (record->at("config") == config && record->at("impl") == cv::name_of(side))
        if (auto report = report_of(*record, side)) finished.push_back(std::move(*report));
  return finished;
}

}  // namespace tigon::cli
