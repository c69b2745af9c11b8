// tigon run: check, bench, converge and report into one results folder.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/stages.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/cases/known_names.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

constexpr const char* kLargeConfig = "350m";

struct RunOptions {
  CheckOptions check;
  BenchOptions bench;
  ConvergeOptions converge;
  std::vector<std::string> stages;
  std::vector<std::string> ops;
  std::string shard;
  uint64_t seed = 42;
  bool quick = false;

  bool has(const std::string& stage) const {
    return stages.empty() || std::find(stages.begin(), stages.end(), stage) != stages.end();
  }
};

// A stage's failure is its exit code and never ends the run, but for a record that cannot be
// written.
int guarded(const char* stage, const std::function<int()>& body) {
  if (interrupted()) return kExitInterrupted;
  fmt::print("{}\n", colored(fmt::format("== {} ==", stage), Color::kDim));
  std::fflush(stdout);
  try {
    return body();
  } catch (const RecordError&) {
    throw;
  } catch (const std::exception& error) {
    print_error(fmt::format("{}: {}", stage, error.what()));
    return kExitInfrastructure;
  }
}

int run_stages(Session& session, const RunOptions& options,
               const convergence::ConvergeRequest& training) {
  int code = kExitOk;
  const auto stage = [&](const char* name, const std::function<int()>& body) {
    if (options.has(name)) code = combined(code, guarded(name, body));
  };
  stage("check", [&] { return check_stage(session, options.check); });
  if (!options.quick && shard_of(options.shard).index == 0)
    stage("mutants", [&] { return mutants_stage(session, {.ops = options.ops}); });
  stage("bench", [&] { return bench_stage(session, options.bench); });
  if (shard_of(options.shard).index > 0) return code;  // a training cannot be divided: shard 0's
  stage("converge", [&] { return converge_stage(session, training); });
  if (default_executor() == "cuda" && !options.quick) {
    convergence::ConvergeRequest large = training;  // a GPU trains the large preset, too
    large.config = kLargeConfig;
    large.dtypes.clear();
    large.quick = true;
    stage("converge", [&] { return converge_stage(session, large); });
  }
  return code;
}

void prepare(RunOptions* options) {
  require_known("stage", options->stages, {"check", "mutants", "bench", "converge", "report"});
  for (Selection* select : {&options->check.select, &options->bench.select}) {
    select->ops = options->ops;
    select->seed = options->seed;
    select->shard = options->shard;
    request_of(*select);
  }
  options->check.quick = options->quick;
  if (options->quick) options->bench.size = SweepSize::kQuick;
  options->converge.request.quick = options->quick;
}

}  // namespace

void add_run(Command root, Program* program) {
  Command command =
      root.add_command("run", "checks, sweeps, a short training and the report, in one go");
  command.footer(
      "Examples:\n"
      "  ./tigon run\n"
      "  ./tigon run --quick\n"
      "  ./tigon run --out /tmp/results --data book.txt\n"
      "  ./tigon run --stages check,report --op rope\n"
      "A stage that fails does not stop the next. The exit code is the lowest of those that are\n"
      "not 0.");
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
  command.option("--steps", &options->converge.request.steps, "training steps");
  command.flag("--quick", &options->quick, "tiny cases, few cells, a short training");
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
