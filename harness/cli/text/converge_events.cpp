// SPDX-License-Identifier: Apache-2.0
// Lines of a training's child to records and text.
#include "harness/cli/text/converge_events.h"

#include <fmt/format.h>

#include <utility>

#include "convergence/next_action/report.h"
#include "harness/cli/text/next_action_lines.h"
#include "harness/cli/text/parts_table.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

namespace cv = convergence;
namespace na = convergence::next_action;

constexpr double kSilenceS = 600;  // the slowest step of the largest preset takes seconds
constexpr double kGraceS = 300;    // after Ctrl-C: the step at hand and the checkpoint

Json step_fields(const cv::StepReport& s) {
  return {{"config", s.config},
          {"impl", cv::name_of(s.side)},
          {"dtype", name_of(s.dtype)},
          {"twin", s.twin},
          {"step", s.step},
          {"loss", s.loss},
          {"grad_norm", s.grad_norm},
          {"seconds_s", s.seconds_s}};
}

Json run_fields_of(const cv::RunReport& r) {
  return {{"config", r.config},
          {"impl", cv::name_of(r.side)},
          {"dtype", name_of(r.dtype)},
          {"twin", r.twin},
          {"steps", r.steps},
          {"complete", r.complete},
          {"parameters", r.parameters},
          {"vocabulary", r.vocabulary},
          {"tokenizer_entries", r.tokenizer_entries},
          {"tokens_per_step", r.tokens_per_step},
          {"data", r.data},
          {"loss", r.loss},
          {"final_loss", r.final_loss},
          {"held_out_loss", r.held_out_loss},
          {"peak_bytes", r.peak_bytes},
          {"planned_bytes", r.planned_bytes},
          {"tokens_per_s", r.tokens_per_s},
          {"seconds_s", r.seconds_s},
          {"seed", r.seed},
          {"executor", r.executor},
          {"attention", r.attention},
          {"launches", r.launches}};
}

Json equivalence_fields(const std::vector<cv::Equivalence>& equivalence) {
  Json list = Json::array();
  for (const cv::Equivalence& e : equivalence)
    list.push_back({{"what", e.what},
                    {"difference", e.difference},
                    {"lower", e.lower},
                    {"upper", e.upper},
                    {"margin", e.margin},
                    {"confidence", e.confidence},
                    {"shown", e.shown()}});
  return list;
}

Json verdict_fields(const cv::VerdictReport& v) {
  return {{"config", v.config},
          {"dtype", name_of(v.dtype)},
          {"verdict", v.verdict},
          {"reason", v.reason},
          {"largest_difference", v.largest_difference},
          {"budget", v.budget},
          {"step_of_largest", v.step_of_largest},
          {"differences", v.differences},
          {"budgets", v.budgets},
          {"equivalence", equivalence_fields(v.equivalence)},
          {"held_out_difference", v.held_out_difference},
          {"held_out_budget", v.held_out_budget},
          {"memory_ratio", v.memory_ratio},
          {"speed_ratio", v.speed_ratio}};
}

Json gradient_fields(const cv::GradientReport& g) {
  Json parameters = Json::array();
  for (const cv::ParameterError& p : g.parameters)
    parameters.push_back(
        {{"step", p.step}, {"parameter", p.parameter}, {"error", p.error}, {"budget", p.budget}});
  return {{"config", g.config}, {"dtype", name_of(g.dtype)},  {"verdict", g.verdict},
          {"reason", g.reason}, {"first_step", g.first_step}, {"parameters", parameters}};
}

Json claim_fields(const cv::ClaimReport& r) {
  return {{"experiment", r.experiment},
          {"claim", r.claim.text},
          {"quantity", cv::name_of(r.claim.quantity)},
          {"number", r.claim.number},
          {"paper", cv::show(r.claim.quantity, r.claim.number)},
          {"source", r.claim.source},
          {"value", r.finding.value},
          {"measured", cv::show(r.claim.quantity, r.finding.value)},
          {"basis", r.finding.basis},
          {"size", r.finding.size},
          {"on", r.on},
          {"verdict", r.verdict},
          {"reason", r.finding.reason}};
}

Json tagged(const char* kind, Json fields) {
  return {{"record", kind}, {"fields", std::move(fields)}};
}

// A number as text, "-" for null.
std::string show(const Json& number) {
  return number.is_number() ? fmt::format("{:.4g}", number.get<double>()) : "-";
}

std::string claim_line(const Json& r) {
  std::string line = fmt::format("{}: {}: claimed {}, measured {}: {}", text_of(r, "experiment"),
                                 text_of(r, "claim"), text_of(r, "paper"), text_of(r, "measured"),
                                 text_of(r, "verdict"));
  for (const char* key : {"basis", "size", "reason"})
    if (!r[key].empty() && !text_of(r, key).empty()) line += "; " + text_of(r, key);
  return line;
}

std::string equivalence_line(const Json& e) {
  return fmt::format("{} loss: fused - naive lies within {} to {}, margin {}, confidence {}: {}",
                     text_of(e, "what"), show(e["lower"]), show(e["upper"]), show(e["margin"]),
                     show(e["confidence"]), e["shown"] ? "equivalent" : "NOT shown equivalent");
}

std::string control_line(const Json& r) {
  const std::string outcome = text_of(r, "outcome");
  return fmt::format("{} {}: {}: {}",
                     colored(outcome, outcome == "caught" ? Color::kGreen : Color::kRed),
                     text_of(r, "mutant"), text_of(r, "what"), text_of(r, "reason")) +
         (r.contains("dtype")
              ? fmt::format(" ({}, step {})", text_of(r, "dtype"), r["step"].get<int>())
              : "");
}

std::string gradient_line(const Json& r) {
  double worst = 0, budget = 0;
  std::string where = "-";
  int steps = 0;
  for (const Json& p : r["parameters"]) {
    steps = p["step"];
    if (!p["error"].is_number() || p["error"] < worst) continue;
    worst = p["error"];
    budget = p["budget"];
    where = fmt::format("{} at step {}", text_of(p, "parameter"), steps);
  }
  const bool passed = r["verdict"] == "passed";
  return fmt::format(
      "{} gradients of steps 1 to {} against the oracle: {}{}{}; largest error {:.3g} of {:.3g}, "
      "{}",
      text_of(r, "dtype"), steps,
      colored(text_of(r, "verdict"), passed ? Color::kGreen : Color::kRed), passed ? "" : ": ",
      text_of(r, "reason"), worst, budget, where);
}

std::string line_of(const std::string& kind, const Json& r) {
  if (kind == "next_action") return predictor_line(r);
  if (kind == "next_action_gap") return gap_line(r);
  if (kind == "claim") return claim_line(r);
  if (kind == "converge_parts") return parts_line(r);
  if (kind == "converge_gradients") return gradient_line(r);
  if (kind == "mutant") return control_line(r);
  const std::string head =
      fmt::format("{} {}", r["config"].get<std::string>(), r["dtype"].get<std::string>());
  if (kind == "converge")
    return fmt::format(
        "{} {}: {} steps, loss {} -> {}, held out {}, peak {}, {} tokens/s{}, {} s", head,
        r["impl"].get<std::string>(), r["steps"].get<int>(),
        r["loss"].empty() ? "-" : show(r["loss"][0]), show(r["final_loss"]),
        show(r["held_out_loss"]), show_bytes(r["peak_bytes"].get<double>()),
        show(r["tokens_per_s"]),
        on_gpu() ? fmt::format(" (steps: {})", text_of(r, "launches")) : " (host executor)",
        show(r["seconds_s"]));
  const bool passed = r["verdict"] == "passed";
  std::string line =
      fmt::format("{}: {}{}{}; largest difference {} of budget {} at step {}, memory x{}{}", head,
                  colored(r["verdict"].get<std::string>(), passed ? Color::kGreen : Color::kRed),
                  passed ? "" : ": ", r["reason"].get<std::string>(), show(r["largest_difference"]),
                  show(r["budget"]), r["step_of_largest"].get<int>() + 1, show(r["memory_ratio"]),
                  on_gpu() ? fmt::format(", speed x{}", show(r["speed_ratio"])) : "");
  for (const Json& e : r["equivalence"]) line += "\n  " + equivalence_line(e);
  return line;
}

}  // namespace

cv::ConvergeObserver observer_of(const Emit& emit) {
  cv::ConvergeObserver observer;
  observer.on_note = [&](const std::string& note) { emit({{"note", note}}); };
  observer.on_step = [&](const cv::StepReport& s) {
    emit({{"record", "converge_step"},
          {"fields", step_fields(s)},
          {"of", s.steps},
          {"tokens_per_s", s.tokens_per_s},
          {"peak_bytes", s.peak_bytes}});
  };
  observer.on_run = [&](const cv::RunReport& r) { emit(tagged("converge", run_fields_of(r))); };
  observer.on_verdict = [&](const cv::VerdictReport& v) {
    emit(tagged("converge_verdict", verdict_fields(v)));
  };
  observer.on_gradients = [&](const cv::GradientReport& g) {
    emit(tagged("converge_gradients", gradient_fields(g)));
  };
  observer.on_training = [&](const na::TrainingReport& r) {
    emit({{"training", r.predictor}, {"done", r.done}, {"of", r.of}, {"loss", r.loss}});
  };
  observer.on_predictor = [&](const na::PredictorReport& r) {
    emit(tagged("next_action", fields_of(r)));
  };
  observer.on_gap = [&](const na::GapReport& r) { emit(tagged("next_action_gap", fields_of(r))); };
  return observer;
}

void emit_claim(const Emit& emit, const cv::ClaimReport& report) {
  emit(tagged("claim", claim_fields(report)));
}

void ConvergeListener::operator()(const Json& line) {
  if (line.contains("note")) {
    bar().line(line["note"].get<std::string>());
    if (of_all_) begin("the first gradients against the oracle");
  } else if (line.contains("progress")) {
    if (line["progress"] == 1) progress_ = std::make_unique<Progress>("steps", line["of"]);
    bar().step("");
  } else if (line.contains("training")) {
    if (line["done"] == 1)
      progress_ = std::make_unique<Progress>(line["training"], line["of"].get<int>());
    bar().step("loss " + show(line["loss"]));
  } else if (line.contains("error")) {
    error_ = line["error"];
    error_code_ = line["exit_code"];
  } else {
    record(line["record"], line["fields"], line);
  }
}

void ConvergeListener::expect(const std::string& what, int steps) {
  progress_ = std::make_unique<Progress>(what, steps);
  of_all_ = true;
}

void ConvergeListener::step(const Json& fields, const Json& line) {
  const std::string title = fmt::format("{} {}", text_of(fields, "dtype"), text_of(fields, "impl"));
  const std::string training = fmt::format("{} {}", title, fields["twin"].get<int>());
  if (!of_all_ && fields["step"] == 0)
    progress_ = std::make_unique<Progress>(title, line["of"].get<int>());
  if (of_all_ && training != training_)
    bar().shorten(fields["step"].get<int>());  // as a checkpoint
  training_ = training;
  bar().step(fmt::format("{}loss {}, {} tokens/s{}, {}", of_all_ ? title + ": " : "",
                         show(fields["loss"]), show(line["tokens_per_s"]),
                         on_gpu() ? "" : " (host executor)",
                         show_bytes(line["peak_bytes"].get<double>())));
}

void ConvergeListener::record(const std::string& kind, const Json& fields, const Json& line) {
  session_->record(kind, fields);
  if (kind == "converge_step") return step(fields, line);
  if (kind == "next_action" && !std::exchange(predictors_shown_, true))
    bar().line(predictor_head());
  bar().line(line_of(kind, fields));
  if (kind == "claim") claims_.push_back(fields);
  if (kind == "converge_parts") parts_.push_back(fields);
  count_record(kind, fields);
}

void ConvergeListener::count_record(const std::string& kind, const Json& fields) {
  const std::string verdict = fields.value("verdict", "");
  if (kind == "converge_verdict" || kind == "converge_gradients")
    count(parse_verdict(verdict).value_or(Verdict::kRuntimeError));
  if (kind == "mutant")
    count(fields.value("outcome", "") == "caught" ? Verdict::kPassed
                                                  : Verdict::kIncorrectNumerical);
  if (kind == "converge_parts") count(Verdict::kPassed);  // out of memory is a finding
  // Whether a claim holds is a finding; what can fail is its measurement.
  if (kind == "claim") count(verdict == "not measured here" ? Verdict::kSkipped : Verdict::kPassed);
}

void ConvergeListener::count(Verdict verdict) {
  tally_.add(verdict);
  session_->count(verdict);
}

Progress& ConvergeListener::bar() {
  if (!progress_) progress_ = std::make_unique<Progress>("converge");
  return *progress_;
}

int run_unit(Session& session, const std::string& unit, const UnitWork& work,
             ConvergeListener& listener) {
  const WorkerEnd end = run_in_child(
      [&](const Emit& emit) {
        try {
          std::atomic<bool> stop = false;
          work(
              [&](const Json& line) {
                emit(line);
                stop = interrupted();
              },
              stop);
        } catch (const cv::ConvergeError& error) {
          emit({{"error", error.what()}, {"exit_code", error.exit_code}});
        }
      },
      [&](const Json& line) { listener(line); }, kSilenceS, kGraceS);
  if (interrupted()) return kExitInterrupted;
  std::string error = listener.error();
  if (end.kind != WorkerEnd::kDone) {
    error = end.reason;
    listener.count(end.kind == WorkerEnd::kCrashed   ? Verdict::kCrashed
                   : end.kind == WorkerEnd::kTimeout ? Verdict::kTimeout
                                                     : Verdict::kRuntimeError);
  }
  if (error.empty())
    session.seal(unit);
  else
    print_error("converge: " + error);
  return listener.error_code() != 0 ? listener.error_code() : listener.tally().exit_code();
}

}  // namespace tigon::cli
