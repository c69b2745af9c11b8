// SPDX-License-Identifier: Apache-2.0
// tigon mutants: plants faults in the kernels, runs the ordinary cases over them and prints how
// many were caught, per op and element type; the same for faults of the comparator and kernels that
// cheat.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "harness/cli/commands.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/faulty_libraries.h"
#include "harness/cli/options/selection.h"
#include "harness/cli/sampled_faults.h"
#include "harness/cli/stages.h"
#include "harness/cli/text/score_table.h"
#include "harness/cli/text/terminal.h"
#include "harness/mutants/catalogue.h"
#include "harness/mutants/external.h"
#include "harness/mutants/score.h"
#include "harness/mutants/user_faults.h"
#include "harness/run/cases/search_pattern.h"
#include "harness/run/check.h"
#include "harness/spec/op_spec.h"

namespace tigon::cli {
namespace {

Verdict verdict_of(MutantOutcome outcome) {
  if (outcome == MutantOutcome::kCaught) return Verdict::kPassed;
  return is_failure(outcome) ? Verdict::kIncorrectNumerical : Verdict::kSkipped;
}

bool wants(const MutantOptions& options, const std::string& group) {
  return options.groups.empty() ||
         std::find(options.groups.begin(), options.groups.end(), group) != options.groups.end();
}

MutantRequest request_of(const MutantOptions& options) {
  Selection selection;
  selection.ops = options.ops;
  selected_ops(selection);  // knows the names
  MutantRequest request{.ops = options.ops,
                        .filter = options.filter,
                        .part = options.part,
                        .jobs = options.jobs,
                        .timeout_s = options.timeout_s};
  for (const std::string& name : options.dtypes) request.dtypes.push_back(dtype_named(name));
  if (!options.faults.empty()) {
    request.faults = user_faults(options.faults, options.source);
    request.program = "tigon-own-mutants";
    request.libraries = options.libraries;
  }
  const std::vector<MutantGroup> planted = MutantRequest{}.groups;
  std::vector<std::string> groups;
  for (const MutantGroup group : planted) groups.emplace_back(name_of(group));
  for (const ExternalGroup& group : external_groups()) groups.push_back(group.name);
  for (const std::string& group : options.groups)
    if (std::find(groups.begin(), groups.end(), group) == groups.end())
      throw UsageError(fmt::format("no group '{}'; known: {}", group, fmt::join(groups, ", ")));
  for (const ExternalGroup& group : external_groups())
    if (!options.groups.empty() && wants(options, group.name) && external_program(group).empty())
      throw MissingData(
          fmt::format("group {}: this build has no program {}", group.name, group.program));
  request.groups.clear();
  for (const MutantGroup group : planted)
    if (wants(options, name_of(group))) request.groups.push_back(group);
  return request;
}

void print_faults(const std::vector<Mutant>& faults) {
  for (const Mutant& m : faults) {
    std::string targets;
    for (const MutantTarget& t : m.targets)
      for (const std::string& pass : t.passes) targets += fmt::format(" {}/{}", t.op, pass);
    fmt::print("{:<45} {:>3} {:<12} {}\n{:<49} in{}\n", m.name,
               m.catalogue ? std::to_string(m.catalogue) : "", name_of(m.group), m.what, "",
               targets);
    for (const Equivalent& e : m.equivalents) {
      std::string where = e.op.empty() ? "" : " " + e.op + (e.pass.empty() ? "" : "/" + e.pass);
      for (const DType dtype : e.dtypes) where += fmt::format(" {}", name_of(dtype));
      fmt::print("{:<49} equivalent in{}: {}\n", "", where, e.proof);
    }
    if (!m.host_only.empty()) fmt::print("{:<49} host executor only: {}\n", "", m.host_only);
  }
}

void print_list(const MutantRequest& request) {
  if (!request.faults.empty()) return print_faults(request.faults);
  print_faults(all_mutants());
  fmt::print("\nOf the catalogue no fault is planted for:\n");
  for (const CatalogueEntry& e : fault_catalogue())
    if (e.elsewhere[0] != '\0') fmt::print("  {} {}: {}\n", e.number, e.what, e.elsewhere);
}

// A run of mutants: what is counted over all its faults.
class MutantRun {
 public:
  MutantRun(Session* session, const MutantOptions& options, size_t planted)
      : session_(*session), options_(options), progress_("mutants", static_cast<int>(planted)) {}

  void add(const MutantResult& r);
  void run(const ExternalGroup& group);
  // Prints the score; returns the exit code.
  int conclude() const {
    table_.print();
    if (tally_.failed() == 0 || !table_.is_enough(options_.score, tally_.failed()))
      return tally_.exit_code();
    fmt::print("enough: --score wants {}%\n", options_.score);
    return kExitOk;
  }

 private:
  void add(const ExternalResult& r);
  void count(Verdict verdict) {
    session_.count(verdict);
    tally_.add(verdict);
  }

  Session& session_;
  const MutantOptions& options_;
  Progress progress_;
  ScoreTable table_;
  Tally tally_;
};

void MutantRun::add(const MutantResult& r) {
  session_.record("mutant", to_json(r));
  count(verdict_of(r.outcome));
  table_.add(r);
  const std::string id =
      fmt::format("{} {} {} {} [{}]", r.mutant->name, r.op, r.pass, name_of(r.dtype), r.executor);
  if (is_failure(r.outcome))
    progress_.line(fmt::format("{} {}: {}: {}", colored(name_of(r.outcome), Color::kRed), id,
                               r.mutant->what, r.reason));
  else if (options_.verbose)
    progress_.line(fmt::format("{} {}: {} after {} cases, {:.2f} s: {} {}", name_of(r.outcome), id,
                               name_of(r.verdict), r.cases, r.seconds, r.case_id, r.reason));
  progress_.step(id);
}

void MutantRun::add(const ExternalResult& r) {
  session_.record("mutant", to_json(r));
  count(!r.applies ? Verdict::kSkipped
        : r.caught ? Verdict::kPassed
                   : Verdict::kIncorrectNumerical);
  table_.add(r);
  if (r.applies && (!r.caught || options_.verbose))
    progress_.line(fmt::format("{} {} {}: {}: {}",
                               r.caught ? "caught" : colored("survived", Color::kRed), r.group,
                               r.name, r.what, r.by));
}

void MutantRun::run(const ExternalGroup& group) {
  if (!external_program(group).empty())
    return run_external(group, [this](const ExternalResult& r) { add(r); });
  progress_.line(
      fmt::format("not run: group {}: this build has no program {}", group.name, group.program));
  count(Verdict::kSkipped);
}

// External groups have no op, element type or name to choose by.
bool wants_external(const MutantOptions& options, const ExternalGroup& group) {
  const bool all = options.ops.empty() && options.dtypes.empty() && options.filter.empty() &&
                   options.faults.empty();
  return wants(options, group.name) && (all || !options.groups.empty());
}

}  // namespace

int mutants_stage(Session& session, const MutantOptions& options) {
  MutantRequest request = request_of(options);
  const size_t planted = select_mutants(request).size();
  MutantRun run(&session, options, planted);
  std::optional<Progress> survey;
  request.on_survey = [&](size_t done, size_t of) {
    if (done == 1) survey.emplace("mutants, every case without a fault", static_cast<int>(of));
    survey->step("");
    if (done == of) survey.reset();
  };
  if (planted > 0) run_mutants(request, [&](const MutantResult& r) { run.add(r); });
  for (const ExternalGroup& group : external_groups())
    if (wants_external(options, group) && !interrupted()) run.run(group);
  return run.conclude();
}

namespace {

constexpr const char* kMutantExamples =
    "Examples:\n"
    "  ./tigon mutants                      all faults; a score per op and element type\n"
    "  ./tigon mutants rms_norm --dtype bf16 -v\n"
    "  ./tigon mutants --filter 'rope.*sign'\n"
    "  ./tigon mutants --list               what is planted and what is equivalent, with the "
    "proof\n"
    "  ./tigon mutants --faults my.faults   faults of yours: which of them do the checks miss?\n"
    "  ./tigon mutants --faults my.faults --in my_kernel.cu   the same in a source of yours\n"
    "  ./tigon mutants --sample 60 --seed 7 --op rms_norm   faults that nobody chose\n"
    "  ./tigon mutants --sample 100 --changed origin/main --score 97   of what differs from a "
    "commit\n"
    "Faults are records in harness/ops/*.faults; harness/mutants/README.md has the format. One "
    "is caught\nwhen a case fails that passes without it. Exit code 1 when one is not.";

void add_options(const Command& command, MutantOptions* options) {
  command.list("--op", &options->ops, "ops (default: all)");
  command.list("--dtype", &options->dtypes, "f32, bf16, f16 (default: all)");
  command.list("--group", &options->groups,
               "numeric, memory_sync, sampled, comparator, cheat (default: all)");
  command.option("--filter", &options->filter, "regex searched in the fault's name");
  command.option("--jobs", &options->jobs, "child processes at a time (default: one per core)")
      .not_negative();
  command.option("--timeout", &options->timeout_s, "seconds that one case may take (default: 20)")
      .not_negative();
  const Option faults = command.option(
      "--faults", &options->faults, "a file with faults of yours, planted instead of the tree's");
  command
      .option("--in", &options->source,
              "a source of yours that gets them instead of the tree's kernels: a file for ./tigon "
              "try, or of a plug-in")
      .needs(faults);
  const Option sample =
      command
          .option("--sample", &options->sample,
                  "mutants that are drawn by chance in place of the faults: so many of each op's "
                  "sources, or of all that --changed names")
          .not_negative();
  command.option("--seed", &options->sample_seed, "of the draw (default: 1)").needs(sample);
  command
      .option("--changed", &options->changed,
              "a commit: draw from the kernels' files that differ from it")
      .needs(sample);
  command
      .option("--score", &options->score,
              "percent that must be caught for exit code 0 (default: 100)")
      .positive();
  command.flag("--list", &options->list, "print the faults instead of running them");
  command.flag("-v,--verbose", &options->verbose, "a line for every fault");
}

void run_mutants_command(MutantOptions* options, const Output& output, Program* program) {
  search_pattern("--filter", options->filter);
  if (options->score > 100)
    throw UsageError(fmt::format("--score {}: it is a percentage, 1 to 100", options->score));
  SessionOptions session = session_options(*program, output, 0);  // before anything is built
  if (options->sample > 0) {
    program->exit_code = sample_faults(options);
    if (program->exit_code != kExitOk) return;
  }
  MutantRequest request = request_of(*options);  // a wrong command line makes no results
  if (options->list) return print_list(request);
  if (!options->source.empty()) {
    program->exit_code = build_faulty_libraries(options->source, &request);
    if (program->exit_code != kExitOk) return;
    options->libraries = request.libraries;
  }
  if (select_mutants(request).empty() && options->groups.empty()) {
    fmt::print("nothing to run: no fault is selected\n");
    program->exit_code = kExitNothing;
    return;
  }
  session.seed = request.seed;
  program->exit_code = run_session(session, [&](Session& s) { return mutants_stage(s, *options); });
}

}  // namespace

void add_mutants(Command command, Program* program) {
  command.footer(kMutantExamples);
  const auto options = std::make_shared<MutantOptions>();
  const auto output = std::make_shared<Output>();
  const auto positional = std::make_shared<std::vector<std::string>>();
  command.option("ops", positional.get(), "ops, as --op");
  add_options(command, options.get());
  add_output(command, output.get());
  command.run([=] {
    options->ops.insert(options->ops.end(), positional->begin(), positional->end());
    run_mutants_command(options.get(), *output, program);
  });
}

}  // namespace tigon::cli
