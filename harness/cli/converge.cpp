// tigon converge: trains a small LLaMA naive and fused and compares.
#include "convergence/converge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "convergence/text_data.h"
#include "harness/cli/commands.h"
#include "harness/cli/converge_options.h"
#include "harness/cli/stages.h"
#include "harness/cli/suggest.h"
#include "harness/cli/terminal.h"
#include "harness/measure/worker.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

namespace cv = convergence;

constexpr double kSilenceS = 600;  // the slowest step of the largest preset takes seconds

Json step_fields(const cv::StepReport& s, const std::string& config) {
  return {{"config", config},
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
          {"executor", r.executor}};
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
          {"held_out_difference", v.held_out_difference},
          {"held_out_budget", v.held_out_budget},
          {"memory_ratio", v.memory_ratio},
          {"speed_ratio", v.speed_ratio}};
}

Json tagged(const char* kind, Json fields) {
  return {{"record", kind}, {"fields", std::move(fields)}};
}

// In the child: everything that happens becomes a line.
void train(const cv::ConvergeRequest& request, const Emit& emit) {
  cv::ConvergeObserver observer;
  observer.on_note = [&](const std::string& note) { emit({{"note", note}}); };
  observer.on_step = [&](const cv::StepReport& s) {
    emit(
        {{"record", "converge_step"}, {"fields", step_fields(s, request.config)}, {"of", s.steps}});
  };
  observer.on_run = [&](const cv::RunReport& r) { emit(tagged("converge", run_fields_of(r))); };
  observer.on_verdict = [&](const cv::VerdictReport& v) {
    emit(tagged("converge_verdict", verdict_fields(v)));
  };
  try {
    cv::converge(request, observer);
  } catch (const cv::ConvergeError& error) {
    emit({{"error", error.what()}, {"exit_code", error.exit_code}});
  }
}

// A number as text, "-" for null.
std::string show(const Json& number) {
  return number.is_number() ? fmt::format("{:.4g}", number.get<double>()) : "-";
}

// Times of the host executor say nothing of a kernel's speed.
bool on_gpu() { return default_executor() == "cuda"; }

std::string line_of(const std::string& kind, const Json& r) {
  const std::string head =
      fmt::format("{} {}", r["config"].get<std::string>(), r["dtype"].get<std::string>());
  if (kind == "converge")
    return fmt::format("{} {}: {} steps, loss {} -> {}, held out {}, peak {}, {} tokens/s{}, {} s",
                       head, r["impl"].get<std::string>(), r["steps"].get<int>(),
                       r["loss"].empty() ? "-" : show(r["loss"][0]), show(r["final_loss"]),
                       show(r["held_out_loss"]), show_bytes(r["peak_bytes"].get<double>()),
                       show(r["tokens_per_s"]), on_gpu() ? "" : " (host executor)",
                       show(r["seconds_s"]));
  const bool passed = r["verdict"] == "passed";
  return fmt::format(
      "{}: {}{}{}; largest difference {} of budget {} at step {}, memory x{}{}", head,
      colored(r["verdict"].get<std::string>(), passed ? Color::kGreen : Color::kRed),
      passed ? "" : ": ", r["reason"].get<std::string>(), show(r["largest_difference"]),
      show(r["budget"]), r["step_of_largest"].get<int>(), show(r["memory_ratio"]),
      on_gpu() ? fmt::format(", speed x{}", show(r["speed_ratio"])) : "");
}

// In this process: lines of the child become records, a progress bar and text.
class ConvergeListener {
 public:
  explicit ConvergeListener(Session* session) : session_(session) {}

  void operator()(const Json& line) {
    if (line.contains("note")) {
      bar().line(line["note"].get<std::string>());
    } else if (line.contains("error")) {
      error_ = line["error"];
      error_code_ = line["exit_code"];
    } else {
      record(line["record"], line["fields"], line);
    }
  }

  const std::string& error() const { return error_; }
  int error_code() const { return error_code_; }
  const Tally& tally() const { return tally_; }
  void count(Verdict verdict) {
    tally_.add(verdict);
    session_->count(verdict);
  }

 private:
  void record(const std::string& kind, const Json& fields, const Json& line) {
    session_->record(kind, fields);
    if (kind == "converge_step") {
      if (fields["step"] == 0)
        progress_ =
            std::make_unique<Progress>(fmt::format("{} {}", fields["dtype"].get<std::string>(),
                                                   fields["impl"].get<std::string>()),
                                       line["of"].get<int>());
      bar().step("loss " + show(fields["loss"]));
      return;
    }
    bar().line(line_of(kind, fields));
    if (kind == "converge_verdict")
      count(parse_verdict(fields["verdict"].get<std::string>()).value_or(Verdict::kRuntimeError));
  }

  Progress& bar() {
    if (!progress_) progress_ = std::make_unique<Progress>("converge");
    return *progress_;
  }

  Session* session_;
  std::unique_ptr<Progress> progress_;
  std::string error_;
  int error_code_ = 0;
  Tally tally_;
};

int require_positive(const char* option, int value) {
  if (value < 0) throw UsageError(fmt::format("{} {}: must be 1 or more", option, value));
  return value;
}

// Before a run is begun.
void require_text(const std::string& data) {
  try {
    cv::read_corpus(data);
  } catch (const cv::ConvergeError& error) {
    throw UsageError(fmt::format("--data {}: {}", data, error.what()));
  }
}

}  // namespace

cv::ConvergeRequest checked_request(const ConvergeOptions& options) {
  cv::ConvergeRequest request = options.request;
  require_known("config", {request.config}, cv::config_names());
  require_known("dtype", options.dtypes, {"f32", "bf16"});
  for (const std::string& name : options.dtypes) request.dtypes.push_back(*parse_dtype(name));
  require_positive("--steps", request.steps);
  if (require_positive("--sequence", options.sequence) > 0) request.sequence = options.sequence;
  if (require_positive("--batch", options.batch) > 0) request.batch = options.batch;
  if (require_positive("--vocabulary", options.vocabulary) > 0)
    request.vocabulary = options.vocabulary;
  if (options.tied || options.untied) request.tied = options.tied;
  if (!request.data.empty() && !std::filesystem::exists(request.data))
    throw MissingData(
        fmt::format("--data {}: no such file or folder; give a text file, a folder of text files, "
                    "or leave it out for the system's licence texts",
                    request.data));
  if (!request.data.empty()) require_text(request.data);
  return request;
}

int converge_stage(Session& session, const cv::ConvergeRequest& request) {
  ConvergeListener listener(&session);
  const std::string unit = "converge " + request.config;
  if (session.is_sealed(unit)) {
    for (const Json* verdict : session.resumed()->all("converge_verdict"))
      if (verdict->value("config", "") == request.config)
        listener.count(
            parse_verdict(verdict->value("verdict", "")).value_or(Verdict::kRuntimeError));
    return listener.tally().exit_code();
  }
  const WorkerEnd end = run_in_child([&](const Emit& emit) { train(request, emit); },
                                     [&](const Json& line) { listener(line); }, kSilenceS);
  if (end.kind == WorkerEnd::kInterrupted) return kExitInterrupted;
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

void add_converge(CLI::App* app, Program* program) {
  CLI::App* command = app->add_subcommand(
      "converge", "train a small LLaMA naive and fused from the same seed and batches");
  command->footer(
      fmt::format("Configs: {}\n"
                  "Examples:\n"
                  "  ./tigon converge\n"
                  "  ./tigon converge --dtype f32 --steps 50 --data README.md\n"
                  "  ./tigon converge --untied --seed 7\n"
                  "Fails (exit code 1) when the two runs part by more than rounding explains.",
                  fmt::join(cv::config_names(), ", ")));
  const auto options = std::make_shared<ConvergeOptions>();
  const auto output = std::make_shared<Output>();
  command->add_option("--config", options->request.config, "model and run (default: tiny)");
  command->add_option("--dtype", options->dtypes, "f32, bf16 (default: the config's)")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_option("--steps", options->request.steps, "training steps (default: the config's)");
  command->add_option("--seed", options->request.seed, "seed of weights and batches (default: 1)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--data", options->request.data,
                      "a text file or a folder (default: licence texts of this system)");
  command->add_option("--sequence", options->sequence, "tokens of one sequence");
  command->add_option("--batch", options->batch, "sequences per step");
  command->add_option("--vocabulary", options->vocabulary, "rows of the embedding");
  CLI::Option* tied = command->add_flag("--tied", options->tied, "the head is the embedding");
  command->add_flag("--untied", options->untied, "the head has weights of its own")->excludes(tied);
  command->add_flag("--quick", options->request.quick, "the config's short run");
  add_output(command, output.get());
  command->callback([=] {
    const cv::ConvergeRequest request = checked_request(*options);
    program->exit_code = run_session(session_options(*program, *output, request.seed),
                                     [&](Session& s) { return converge_stage(s, request); });
  });
}

}  // namespace tigon::cli
