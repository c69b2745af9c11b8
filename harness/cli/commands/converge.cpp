// SPDX-License-Identifier: Apache-2.0
// tigon converge: trains a small LLaMA naive and fused and compares.
#include "convergence/converge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "convergence/next_action/logs.h"
#include "convergence/ops.h"
#include "convergence/text_data.h"
#include "harness/cli/commands.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/commands/experiments.h"
#include "harness/cli/stages.h"
#include "harness/cli/text/converge_events.h"
#include "harness/run/cases/known_names.h"

namespace tigon::cli {
namespace {

namespace cv = convergence;

// A log of learners' actions.
const std::string& require_actions(const std::string& data) {
  try {
    cv::next_action::require_log(data);
  } catch (const cv::ConvergeError& error) {
    throw UsageError("--data " + std::string(error.what()));
  }
  return data;
}

// Of this user; empty without a home.
std::filesystem::path token_cache() {
  const char *const cache = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "tigon/tokens";
  if (home != nullptr && *home == '/') return std::filesystem::path(home) / ".cache/tigon/tokens";
  return {};
}

void require_text(const std::string& data) {
  try {
    cv::read_corpus(data);
  } catch (const cv::ConvergeError& error) {
    throw UsageError(fmt::format("--data {}: {}", data, error.what()));
  }
}

// Is the text so long that it is not read at once? What is too short is refused in one line.
bool takes_a_while(const std::string& data) {
  constexpr uintmax_t kLongText = 1 << 20;
  std::error_code none;
  if (std::filesystem::is_directory(data, none)) return true;
  const uintmax_t bytes = std::filesystem::file_size(data, none);
  return !none && bytes > kLongText;
}

}  // namespace

cv::ModelConfig checked_config(const cv::ConvergeRequest& request) {
  try {
    return cv::config_of(request);
  } catch (const cv::ConvergeError& error) {
    throw UsageError(error.what());
  }
}

cv::ConvergeRequest checked_request(const ConvergeOptions& options) {
  cv::ConvergeRequest request = options.request;
  require_known("config", {request.config}, cv::config_names());
  require_known("dtype", options.dtypes, {"f32", "bf16"});
  for (const std::string& name : options.dtypes) request.dtypes.push_back(*parse_dtype(name));
  if (options.sequence > 0) request.sequence = options.sequence;
  if (options.batch > 0) request.batch = options.batch;
  if (options.vocabulary > 0) request.vocabulary = options.vocabulary;
  if (options.accumulate > 0) request.accumulate = options.accumulate;
  if (options.medusa > 0) request.medusa = options.medusa;
  if (options.rate != 0) request.rate = options.rate;
  request.load = options.load;
  request.exports = options.exports;
  require_known("op", request.fused, cv::op_names());
  request.token_cache = token_cache();
  checked_config(request);
  if (options.tied || options.untied) request.tied = options.tied;
  if (!request.data.empty() && !std::filesystem::exists(request.data))
    throw MissingData(
        fmt::format("--data {}: no such file or folder; give a text file, a folder of text files, "
                    "or leave it out for the system's licence texts",
                    request.data));
  if (!request.data.empty()) require_text(request.data);
  return request;
}

int converge_stage(Session& session, const cv::ConvergeRequest& asked) {
  cv::ConvergeRequest request = asked;
  if (std::filesystem::is_regular_file(session.records()))  // no /dev/null.checkpoints
    request.checkpoints = std::filesystem::path(session.records()).replace_extension("checkpoints");
  const std::string name = checked_config(request).name;
  request.finished = finished_runs(session, name);
  ConvergeListener listener(&session);
  const std::string unit = "converge " + name;
  if (session.is_sealed(unit)) {
    for (const Json* verdict : session.resumed()->all("converge_verdict"))
      if (verdict->value("config", "") == name) listener.count_record("converge_verdict", *verdict);
    for (const char* kind : {"converge_gradients", "converge_states", "converge_repeat"})
      for (const Json* record : session.resumed()->all(kind)) listener.count_record(kind, *record);
    return listener.tally().exit_code();
  }
  listener.expect(unit, cv::steps_of(request));
  if (takes_a_while(request.data)) listener.begin("reading the data");
  return run_unit(
      session, unit,
      [&](const Emit& emit, const std::atomic<bool>& stop) {
        cv::converge(request, observer_of(emit), &stop);
      },
      listener);
}

namespace {

std::string examples() {
  return fmt::format(
      "Configs: {}\n"
      "Examples:\n"
      "  ./tigon converge\n"
      "  ./tigon converge --dtype f32 --steps 50 --data kernels\n"
      "  ./tigon converge --untied --seed 7\n"
      "  ./tigon converge --data alpaca.jsonl --pad --tokenizer tokenizer.json "
      "--vocabulary 50257\n"
      "  ./tigon converge --config tiny-gemma2 --accumulate 2 --recompute\n"
      "  ./tigon converge --medusa 3 --frozen --fused linear_cross_entropy\n"
      "  ./tigon converge --checkpoint-every 20 --out results/mine\n"
      "  ./tigon converge --resume results/mine\n"
      "  ./tigon converge --all                  the papers' claims, one table\n"
      "  ./tigon converge --experiment rms_norm,cross_entropy\n"
      "  ./tigon converge --experiment next_action --data studentVle.csv\n"
      "  ./tigon converge --load Qwen3-0.6B --data ids.npy --rate 1e-4 --export mine\n"
      "  ./tigon converge --controls             planted faults must make it fail\n"
      "  ./tigon converge --seeds 40 --quick     kernels without a fault must not\n"
      "  ./tigon converge --parts --each -a T=[128,256] -a V=[4096,32000]\n"
      "  ./tigon converge --parts --config 350m -a T[pow2]=[10:20] --memory 80GiB\n"
      "Fails (exit code 1) when the two runs part by more than rounding explains. A "
      "claim that does\n"
      "not hold is a finding and no failure.",
      fmt::join(cv::config_names(), ", "));
}

void add_model_options(const Command& command, ConvergeOptions* options) {
  command.option("--config", &options->request.config, "model and run (default: tiny)");
  command.list("--dtype", &options->dtypes, "f32, bf16 (default: the config's)");
  command.option("--steps", &options->request.steps, "training steps (default: the config's)")
      .positive();
  command.option("--seed", &options->request.seed, "seed of weights and batches (default: 1)")
      .not_negative();
  command.option("--data", &options->request.data,
                 "a text file, a folder of them, examples (.jsonl) or token ids (.bin, .npy); "
                 "default: licence texts of this system; token ids of more than 1 MiB are kept in "
                 "~/.cache/tigon/tokens; for --experiment next_action a log of "
                 "learners: act-mooc (TSV), JODIE or OULAD's studentVle (CSV)");
  command.option("--load", &options->load,
                 "a folder of Hugging Face: config.json, and safetensors unless weights shall come "
                 "from the seed; Llama, Mistral, Qwen 3");
  command.option("--export", &options->exports,
                 "a folder for the trained weights of both sides, as transformers loads them");
  command.option("--rate", &options->rate, "learning rate at its peak (default: the config's)");
  command.option("--tokenizer", &options->request.tokenizer,
                 "tokenizer.json of Hugging Face, or vocab.json beside merges.txt; default: "
                 "one is trained on the data");
  command.flag("--pad", &options->request.padded,
               "each example of a .jsonl in a row of its own; else they are packed");
  command.option("--sequence", &options->sequence, "tokens of one sequence").positive();
  command.option("--batch", &options->batch, "sequences per step").positive();
  command.option("--vocabulary", &options->vocabulary, "rows of the embedding").positive();
  Option tied = command.flag("--tied", &options->tied, "the head is the embedding");
  command.flag("--untied", &options->untied, "the head has weights of its own").excludes(tied);
  command.flag(
      "--quick", &options->request.quick,
      "the config's short run, gradients at its last state only; of --controls and --seeds a micro "
      "model");
}

void add_step_options(const Command& command, ConvergeOptions* options) {
  command
      .option("--checkpoint-every", &options->request.checkpoint_every,
              "steps between checkpoints, which are kept beside the records (safetensors); "
              "without, only a training that Ctrl-C ended leaves one")
      .positive();
  command
      .option("--accumulate", &options->accumulate,
              "forward passes per step, whose gradients are averaged")
      .positive();
  command.flag("--recompute", &options->request.recompute,
               "run layers again in backward instead of keeping their activations");
  command.flag("!--no-graph", &options->request.graph,
               "launch every step's kernels one by one; else a GPU's steps are captured in a "
               "CUDA graph after the first, with the same bits");
  command.option("--medusa", &options->medusa, "Medusa heads, each with a loss of its own")
      .positive();
  command.flag("--frozen", &options->request.frozen, "train the Medusa heads only");
  command.list("--fused", &options->request.fused,
               "only these ops as kernels on the fused side, to see their share: " +
                   fmt::format("{}", fmt::join(cv::op_names(), ", ")));
}

void add_evidence_options(const Command& command, ConvergeOptions* options) {
  Option experiment = command.list(
      "--experiment", &options->experiments,
      fmt::format("claims of the papers instead: {}", fmt::join(cv::experiment_names(), ", ")));
  Option controls = command.flag("--controls", &options->controls,
                                 "faults planted in the kernels: each must make the evidence fail, "
                                 "and which part of it notices");
  Option all = command.flag("--all", &options->all, "every experiment, and the controls")
                   .excludes(experiment)
                   .excludes(controls);
  Option seeds = command
                     .option("--seeds", &options->seeds,
                             "the same evidence from so many seeds without a fault: more than one "
                             "false alarm in 40 is a failure")
                     .positive()
                     .excludes(all)
                     .excludes(experiment);
  add_parts(command, &options->parts)
      .excludes(all)
      .excludes(experiment)
      .excludes(controls)
      .excludes(seeds);
}

int run_converge(const ConvergeOptions& options, const Program& program, const Output& output) {
  const cv::ConvergeRequest request = checked_request(options);
  const std::vector<std::string> names = options.all ? cv::experiment_names() : options.experiments;
  require_known("experiment", names, cv::experiment_names());
  if (options.all || options.controls) require_controls_program();
  if (options.parts.asked) {
    const std::vector<PartsTable> tables = parts_tables(options.parts, request);
    return run_session(session_options(program, output, request.seed),
                       [&](Session& s) { return parts_stage(s, tables); });
  }
  if (options.seeds > 0 && !options.controls) {
    return run_session(session_options(program, output, request.seed),
                       [&](Session& s) { return seeds_stage(s, request, options.seeds); });
  }
  if (!names.empty() || options.controls) {
    // --all trains on --data, which is text; a log of learners is asked for by name.
    cv::ExperimentSettings settings{request.quick, request.seed, request.data};
    if (std::ranges::count(options.experiments, "next_action") > 0 && !request.data.empty())
      settings.actions = require_actions(request.data);
    settings.graph = request.graph;
    return run_session(session_options(program, output, request.seed), [&](Session& s) {
      int code = kExitOk;
      if (options.controls || options.all) code = controls_stage(s, request);
      if (options.seeds > 0) code = combined(code, seeds_stage(s, request, options.seeds));
      return combined(code, experiments_stage(s, names, settings));
    });
  }
  return run_session(session_options(program, output, request.seed),
                     [&](Session& s) { return converge_stage(s, request); });
}

}  // namespace

void add_converge(Command command, Program* program) {
  command.footer(examples());
  const auto options = std::make_shared<ConvergeOptions>();
  const auto output = std::make_shared<Output>();
  add_model_options(command, options.get());
  add_step_options(command, options.get());
  add_evidence_options(command, options.get());
  add_output(command, output.get());
  add_resume(command);
  command.run([=] { program->exit_code = run_converge(*options, *program, *output); });
}

}  // namespace tigon::cli
