// SPDX-License-Identifier: Apache-2.0
// Lines of a training's child to records and text.
#include "harness/cli/text/converge_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convergence/next_action/report.h"
#include "harness/cli/text/converge_fields.h"
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
  return fmt::format(
      "{} loss: fused - naive lies within {} to {}, margin {}, confidence {}: {}; a shift of {} "
      "would "
      "have been noticed in 9 of 10",
      text_of(e, "what"), show(e["lower"]), show(e["upper"]), show(e["margin"]),
      show(e["confidence"]), e["shown"] ? "equivalent" : "NOT shown equivalent",
      show(e["noticed"]));
}

bool is_alarm(const Json& part) {
  return part["verdict"] != "passed" && part["verdict"] != "not_run";
}

// "oracle f32 1, curves bf16 -": the step at which each part noticed it.
std::string parts_of(const Json& r) {
  std::string line;
  if (!r.contains("parts")) return line;
  for (const Json& p : r["parts"])
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", text_of(p, "part"),
                        is_alarm(p) ? fmt::to_string(p["step"].get<int>()) : "-");
  return " (" + line + ")";
}

std::string control_line(const Json& r) {
  const std::string outcome = text_of(r, "outcome");
  return fmt::format("{} {}: {}: {}",
                     colored(outcome, outcome == "caught" ? Color::kGreen : Color::kRed),
                     text_of(r, "mutant"), text_of(r, "what"), text_of(r, "reason")) +
         parts_of(r);
}

std::string seed_line(const Json& r) {
  std::string failed;
  for (const Json& p : r["parts"])
    if (is_alarm(p)) failed += fmt::format("; {}: {}", text_of(p, "part"), text_of(p, "reason"));
  return fmt::format("seed {}: {}", r["seed"].get<int>(),
                     failed.empty() ? "no alarm" : colored("false alarm", Color::kRed) + failed);
}

std::string repeat_line(const Json& r) {
  return fmt::format("{} {}: {} steps again ({}, then {}): {}", text_of(r, "dtype"),
                     text_of(r, "impl"), r["steps"].get<int>(), text_of(r, "launches"),
                     text_of(r, "again"),
                     r["verdict"] == "passed" ? "the same bits" : text_of(r, "reason"));
}

// The parameter that takes the largest share of its budget.
std::string state_line(const Json& r) {
  const bool passed = r["verdict"] == "passed";
  std::string line =
      fmt::format("{} gradients from the same states, against {}: {}{}{}", text_of(r, "dtype"),
                  text_of(r, "reference").empty() ? "nothing" : text_of(r, "reference"),
                  colored(text_of(r, "verdict"), passed ? Color::kGreen : Color::kRed),
                  passed ? "" : ": ", text_of(r, "reason"));
  double worst = 0;
  std::string where;
  for (const Json& p : r["parameters"]) {
    const Json& across = p["fused"]["across"];
    if (!across.is_number() || across.get<double>() / p["budget"].get<double>() < worst) continue;
    worst = across.get<double>() / p["budget"].get<double>();
    where = fmt::format("; largest share {:.2g}: {} at step {}, fused error {}, naive {}", worst,
                        text_of(p, "parameter"), p["step"].get<int>(), show(p["fused"]["error"]),
                        show(p["naive"]["error"]));
  }
  return line + where;
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
  if (kind == "converge_states") return state_line(r);
  if (kind == "converge_repeat") return repeat_line(r);
  if (kind == "converge_seed") return seed_line(r);
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
          {"fields", fields_of(s)},
          {"of", s.steps},
          {"tokens_per_s", s.tokens_per_s},
          {"peak_bytes", s.peak_bytes}});
  };
  observer.on_run = [&](const cv::RunReport& r) { emit(tagged("converge", fields_of(r))); };
  observer.on_verdict = [&](const cv::VerdictReport& v) {
    emit(tagged("converge_verdict", fields_of(v)));
  };
  observer.on_gradients = [&](const cv::GradientReport& g) {
    emit(tagged("converge_gradients", fields_of(g)));
  };
  observer.on_states = [&](const cv::StateReport& r) {
    emit(tagged("converge_states", fields_of(r)));
  };
  observer.on_repeat = [&](const cv::RepeatReport& r) {
    emit(tagged("converge_repeat", fields_of(r)));
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
  emit(tagged("claim", fields_of(report)));
}

void ConvergeListener::operator()(const Json& line) {
  if (line.contains("note")) {
    bar().line(line["note"].get<std::string>());
    if (of_all_ && !std::exchange(begun_, true)) begin("the first gradients against the oracle");
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
  if (kind == "converge_verdict" || kind == "converge_gradients" || kind == "converge_states" ||
      kind == "converge_repeat")
    count(parse_verdict(verdict).value_or(Verdict::kRuntimeError));
  if (kind == "mutant")
    count(fields.value("outcome", "") == "caught" ? Verdict::kPassed
                                                  : Verdict::kIncorrectNumerical);
  if (kind == "converge_seed") count_seed(fields);
  if (kind == "converge_parts") count(Verdict::kPassed);  // out of memory is a finding
  // Whether a claim holds is a finding; what can fail is its measurement.
  if (kind == "claim")
    count(fields.value("measured", "-") == "-" ? Verdict::kSkipped : Verdict::kPassed);
}

// One false alarm in 40 seeds is what a test of 95 % may give.
void ConvergeListener::count_seed(const Json& fields) {
  constexpr int kSeedsPerAlarm = 40;
  const bool alarm = std::ranges::any_of(fields["parts"], is_alarm);
  alarms_ += alarm;
  const bool allowed = alarms_ <= 1 + seeds_++ / kSeedsPerAlarm;
  count(!alarm ? Verdict::kPassed : allowed ? Verdict::kSkipped : Verdict::kIncorrectNumerical);
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
