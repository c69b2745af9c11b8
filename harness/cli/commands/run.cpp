// SPDX-License-Identifier: Apache-2.0
// tigon run: check, bench, converge and report into one results folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/later_build.h"
#include "harness/cli/stages.h"
#include "harness/cli/text/output_file.h"
#include "harness/cli/text/terminal.h"
#include "harness/peers/peer_process.h"
#include "harness/peers/peers.h"
#include "harness/run/cases/known_names.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

constexpr const char* kLargeConfig = "350m";
constexpr const char* kMainType = "bf16";
constexpr int kRunSteps = 10;  // of each training of a run in which each promise is shown once
// What people would use instead. A GPU's bench has those that are installed beside ours.
const std::vector<std::string> kPeers = {"torch", "compile", "liger", "quack"};
// What stays beside them. Naive and cudnn stand in for eager PyTorch, and their first calls, which
// cuDNN compiles, take about as long as all that is timed.
constexpr const char* kBesidePeers = "fused";
constexpr double kRunCellS = 0.2;  // of timing in a cell, where two halves never agree

constexpr size_t kMostShown = 3;  // failures of a stage on the terminal; the log has all

struct RunOptions {
  CheckOptions check;
  BenchOptions bench;
  ConvergeOptions converge;
  std::vector<std::string> stages;
  std::vector<std::string> ops;
  std::string shard;
  uint64_t seed = 42;
  bool full = false, verbose = false;

  bool has(const std::string& stage) const {
    return stages.empty() || std::find(stages.begin(), stages.end(), stage) != stages.end();
  }
};

// A stage's failure is its exit code and never ends the run, but for a record that cannot be
// written.
int guarded(const char* stage, const std::function<int()>& body) {
  try {
    return body();
  } catch (const RecordError&) {
    throw;
  } catch (const std::exception& error) {
    print_error(fmt::format("{}: {}", stage, error.what()));
    return kExitInfrastructure;
  }
}

// What the terminal shows of a stage: one line, and the first failures.
class StageLines {
 public:
  StageLines(const Session& session, const char* stage)
      : session_(session),
        stage_(stage),
        before_(session.tally()),
        judged_(session.junit().size()) {
    fmt::print(stderr, "tigon: {}\n", stage);
  }
  void print(int code) const {
    const Tally& now = session_.tally();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    fmt::print("{} {:<9} {} passed, {} failed, {} skipped, {:.0f} s\n",
               code == kExitOk ? colored("ok    ", Color::kGreen) : colored("FAILED", Color::kRed),
               stage_, now.passed() - before_.passed(), now.failed() - before_.failed(),
               now.skipped() - before_.skipped(), took.count());
    size_t shown = 0;
    for (size_t i = judged_; i < session_.junit().size() && shown < kMostShown; ++i) {
      const JUnitCase& c = session_.junit()[i];
      if (c.outcome != JUnitCase::kFailure && c.outcome != JUnitCase::kError) continue;
      fmt::print("       {} {}: {}\n", c.classname, c.name, c.reason);
      ++shown;
    }
    std::fflush(stdout);
  }

 private:
  const Session& session_;
  const char* stage_;
  Tally before_;
  size_t judged_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs the stages that are asked for, one after the other.
class Stages {
 public:
  Stages(Session& session, const RunOptions& options)
      : session_(session), options_(options), log_(session.folder() / "run.log") {}

  void run(const char* name, const std::function<int()>& body) {
    if (!options_.has(name) || interrupted()) return;
    const StageLines lines(session_, name);
    const int code = quietly([&] { return guarded(name, body); });
    lines.print(code);
    code_ = combined(code_, code);
  }
  // The exit code of all.
  int end() const {
    if (!options_.verbose) fmt::print("what the stages printed: {}\n", log_.string());
    return interrupted() ? kExitInterrupted : code_;
  }

 private:
  int quietly(const std::function<int()>& body) const {
    if (options_.verbose) return body();
    const OutputFile log(log_);
    return body();
  }

  Session& session_;
  const RunOptions& options_;
  std::filesystem::path log_;
  int code_ = kExitOk;
};

// What ./tigon leaves to be built during the first stages, as a command.
LaterBuild started_build() {
  const char* command = std::getenv("TIGON_LATER_BUILD");
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  return {command ? command : "", folder / "later_build.log"};
}

int mutants_of(Session& session, const RunOptions& options, LaterBuild* build) {
  build->wait();
  MutantOptions mutants{.ops = options.ops, .part = !options.full};
  if (!options.full) mutants.dtypes = {kMainType};
  return mutants_stage(session, mutants);
}

// What is measured beside ours, into the log and onto the terminal.
void print_peers(const std::vector<std::string>& names, bool full, bool verbose) {
  const std::string line =
      names.empty()
          ? fmt::format("peers: none, {} has no torch with numpy", peers::peer_interpreter())
          : fmt::format("peers: {}{}", fmt::join(names, ", "),
                        full ? "" : "; with --full naive and cudnn, too");
  fmt::print("{}\n", line);
  if (!verbose) fmt::print(stderr, "tigon: {}\n", line);
}

// Those that are there; none without a GPU. They import, and compile for the cells of the part,
// during the other stages.
std::vector<std::string> started_peers(const RunOptions& options) {
  if (default_executor() != "cuda" || !options.has("bench")) return {};
  const std::vector<std::string> names = peers::installed(kPeers);
  const BenchOptions& bench = options.bench;
  peers::start(names, options.full ? std::vector<Cell>()
                                   : sweep_cells(request_of(bench.select), bench.size, false));
  return names;
}

// Each promise once: times of the charts' basis, and of what people would use instead.
void bench_a_part(const std::vector<std::string>& names, BenchOptions* bench) {
  bench->bases = Bases::kCold;
  bench->seconds_per_cell = kRunCellS;
  bench->quick_peers = true;
  if (names.empty()) return;
  bench->select.implementations = names;
  bench->select.implementations.push_back(kBesidePeers);
}

int bench_of(Session& session, const RunOptions& options, const std::vector<std::string>& names) {
  BenchOptions bench = options.bench;
  if (default_executor() == "cuda") print_peers(names, options.full, options.verbose);
  bench.peers = fmt::format("{}", fmt::join(names, ","));
  if (!bench.peers.empty()) peers::use(bench.peers);  // not before: they are no kernels to check
  if (!options.full && default_executor() == "cuda") bench_a_part(names, &bench);
  peers::wait(names);
  return bench_stage(session, bench);
}

int run_stages(Session& session, const RunOptions& options,
               const convergence::ConvergeRequest& training) {
  const bool is_first = shard_of(options.shard).index == 0;  // faults and trainings have no shards
  const std::vector<std::string> names = started_peers(options);
  LaterBuild build = started_build();
  Stages stages(session, options);
  stages.run("check", [&] { return check_stage(session, options.check); });
  if (is_first) stages.run("mutants", [&] { return mutants_of(session, options, &build); });
  stages.run("bench", [&] { return bench_of(session, options, names); });
  if (is_first) stages.run("converge", [&] { return converge_stage(session, training); });
  if (is_first && default_executor() == "cuda" && options.full) {
    convergence::ConvergeRequest large = training;  // a GPU trains the large preset, too
    large.config = kLargeConfig;
    large.dtypes.clear();
    large.quick = true;
    stages.run("converge", [&] { return converge_stage(session, large); });
  }
  return stages.end();
}

void prepare(RunOptions* options) {
  require_known("stage", options->stages, {"check", "mutants", "bench", "converge", "report"});
  for (Selection* select : {&options->check.select, &options->bench.select}) {
    select->ops = options->ops;
    select->seed = options->seed;
    select->shard = options->shard;
    request_of(*select);
  }
  options->check.part = !options->full;
  if (!options->full) options->bench.size = SweepSize::kTraining;
  options->converge.request.quick = !options->full;
  if (!options->full && options->converge.request.steps == 0)
    options->converge.request.steps = kRunSteps;
}

}  // namespace

void add_run(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon run\n"
      "  ./tigon run --full      all cases, faults, sizes and types; takes hours, --resume goes "
      "on\n"
      "  ./tigon run --out /tmp/results --data book.txt\n"
      "  ./tigon run --stages check,report --op rope\n"
      "Each promise is shown on a part: every kind of case, each fault once in bf16, the middle "
      "of\n"
      "every sweep, a short training. A stage that fails does not stop the next. The exit code is\n"
      "the lowest of those that are not 0.\n"
      "On a GPU, eager PyTorch, torch.compile, Liger and QuACK are measured beside ours where\n"
      "python3, or the interpreter that TIGON_PEER_PYTHON names, has them, without --full in place "
      "of\n"
      "naive and cudnn.");
  const auto options = std::make_shared<RunOptions>();
  const auto output = std::make_shared<Output>();
  command.list("--op", &options->ops, "ops of check and bench (default: all)");
  command.list("--stages", &options->stages,
               "of check, mutants, bench, converge, report (default: all)");
  command.option("--shard", &options->shard,
                 "I/N: the I-th of N parts of check and bench, as check takes it; shard 0 "
                 "trains");
  command.option("--seed", &options->seed, "seed of the checks' inputs (default: 42)")
      .not_negative();
  command.option("--data", &options->converge.request.data,
                 "text for the training (default: licence texts of this system)");
  command.option("--steps", &options->converge.request.steps, "training steps").positive();
  command.flag("--full", &options->full, "all cases, planted faults, sizes, types and steps");
  command.flag("-v,--verbose", &options->verbose,
               "what the stages print goes to the terminal instead of run.log");
  add_output(command, output.get());
  add_resume(command);
  command.run([=] {
    prepare(options.get());
    const convergence::ConvergeRequest training = checked_request(options->converge);
    SessionOptions session = session_options(*program, *output, options->seed);
    session.shard = shard_of(options->shard);
    program->exit_code = run_session(
        session, [&](Session& s) { return run_stages(s, *options, training); },
        [&](Session& s) {
          return options->has("report")
                     ? guarded("report", [&] { return report_stage(s.records()); })
                     : static_cast<int>(kExitOk);
        });
  });
}

}  // namespace tigon::cli
