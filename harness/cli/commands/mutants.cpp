// SPDX-License-Identifier: Apache-2.0
// tigon mutants: plants faults in the kernels, runs the ordinary cases over them and prints how
// many were caught, per op and element type; the same for faults of the comparator and kernels that
// cheat.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "harness/cli/commands.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/faulty_libraries.h"
#include "harness/cli/options/selection.h"
#include "harness/cli/sampled_faults.h"
#include "harness/cli/stages.h"
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

struct Score {
  int caught = 0, planted = 0;
  void add(bool is_caught) {
    caught += is_caught;
    ++planted;
  }
  std::string text() const { return planted == 0 ? "-" : fmt::format("{}/{}", caught, planted); }
};

// Caught of planted, and what is listed beside it.
class ScoreTable {
 public:
  void add(const MutantResult& r) {
    const std::string dtype = name_of(r.dtype);
    if (r.outcome == MutantOutcome::kEquivalent) {
      excused_[{r.mutant->name, r.reason}].insert(fmt::format("{} {} {}", r.op, r.pass, dtype));
    } else if (r.outcome == MutantOutcome::kNotApplicable) {
      not_run_[r.reason].insert(r.mutant->name);
    } else if (r.mutant->group == MutantGroup::kSampled) {
      by_group_[{name_of(r.mutant->group), r.op}].add(r.outcome == MutantOutcome::kCaught);
      total_.add(r.outcome == MutantOutcome::kCaught);
    } else {
      by_op_[{name_of(r.mutant->group), r.op}][dtype].add(r.outcome == MutantOutcome::kCaught);
      total_.add(r.outcome == MutantOutcome::kCaught);
    }
  }
  void add(const ExternalResult& r) {
    if (!r.applies) {
      not_run_[r.by].insert(r.name);
      return;
    }
    by_group_[{r.group, ""}].add(r.caught);
    total_.add(r.caught);
  }

  void print() const {
    if (!by_op_.empty())
      fmt::print("\n{:<12} {:<22} {:>9} {:>9} {:>9}\n", "group", "op", "f32", "bf16", "f16");
    for (const auto& [row, scores] : by_op_) {
      const auto cell = [&scores = scores](const char* dtype) {
        const auto found = scores.find(dtype);
        return found == scores.end() ? std::string("-") : found->second.text();
      };
      fmt::print("{:<12} {:<22} {:>9} {:>9} {:>9}\n", row.first, row.second, cell("f32"),
                 cell("bf16"), cell("f16"));
    }
    for (const auto& [row, score] : by_group_)
      fmt::print("{:<12} {:<22} {:>9}\n", row.first, row.second, score.text());
    for (const auto& [fault, where] : excused_)
      fmt::print("equivalent: {} in {} runs ({}): {}\n", fault.first, where.size(),
                 shortened(where), fault.second);
    for (const auto& [reason, names] : not_run_)
      fmt::print("not run here: {}: {}\n", shortened(names), reason);
    fmt::print("{}\n",
               colored(fmt::format("{} of {} planted faults caught", total_.caught, total_.planted),
                       total_.caught == total_.planted ? Color::kGreen : Color::kRed));
  }

 private:
  static std::string shortened(const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  std::map<std::pair<std::string, std::string>, std::map<std::string, Score>> by_op_;
  std::map<std::pair<std::string, std::string>, Score> by_group_;  // and op of sampled ones
  std::map<std::pair<std::string, std::string>, std::set<std::string>> excused_;
  std::map<std::string, std::set<std::string>> not_run_;
  Score total_;
};

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

}  // namespace

int mutants_stage(Session& session, const MutantOptions& options) {
  const MutantRequest request = request_of(options);
  ScoreTable table;
  Tally tally;
  const auto count = [&](Verdict verdict) {
    session.count(verdict);
    tally.add(verdict);
  };
  const auto selected = select_mutants(request);
  Progress progress("mutants", static_cast<int>(selected.size()));
  if (!selected.empty())
    run_mutants(request, [&](const MutantResult& r) {
      session.record("mutant", to_json(r));
      count(verdict_of(r.outcome));
      table.add(r);
      const std::string id = fmt::format("{} {} {} {} [{}]", r.mutant->name, r.op, r.pass,
                                         name_of(r.dtype), r.executor);
      if (is_failure(r.outcome))
        progress.line(fmt::format("{} {}: {}: {}", colored(name_of(r.outcome), Color::kRed), id,
                                  r.mutant->what, r.reason));
      else if (options.verbose)
        progress.line(fmt::format("{} {}: {} after {} cases, {:.2f} s: {} {}", name_of(r.outcome),
                                  id, name_of(r.verdict), r.cases, r.seconds, r.case_id, r.reason));
      progress.step(id);
    });
  // Those have no op, element type or name to choose by.
  const bool all = options.ops.empty() && options.dtypes.empty() && options.filter.empty() &&
                   options.faults.empty();
  for (const ExternalGroup& group : external_groups()) {
    if (!wants(options, group.name) || (!all && options.groups.empty()) || interrupted()) continue;
    if (external_program(group).empty()) {
      progress.line(fmt::format("not run: group {}: this build has no program {}", group.name,
                                group.program));
      count(Verdict::kSkipped);
      continue;
    }
    run_external(group, [&](const ExternalResult& r) {
      session.record("mutant", to_json(r));
      count(!r.applies ? Verdict::kSkipped
            : r.caught ? Verdict::kPassed
                       : Verdict::kIncorrectNumerical);
      table.add(r);
      if (r.applies && (!r.caught || options.verbose))
        progress.line(fmt::format("{} {} {}: {}: {}",
                                  r.caught ? "caught" : colored("survived", Color::kRed), r.group,
                                  r.name, r.what, r.by));
    });
  }
  table.print();
  return tally.exit_code();
}

void add_mutants(Command root, Program* program) {
  Command command = root.add_command(
      "mutants", "plant faults in kernels and judge: how many does the harness catch?");
  command.footer(
      "Examples:\n"
      "  ./tigon mutants                      all faults; a score per op and element type\n"
      "  ./tigon mutants rms_norm --dtype bf16 -v\n"
      "  ./tigon mutants --filter 'rope.*sign'\n"
      "  ./tigon mutants --list               what is planted and what is equivalent, with the "
      "proof\n"
      "  ./tigon mutants --faults my.faults   faults of yours: which of them do the checks miss?\n"
      "  ./tigon mutants --faults my.faults --in my_kernel.cu   the same in a source of yours\n"
      "  ./tigon mutants --sample 60 --seed 7 --op rms_norm   faults that nobody chose\n"
      "  ./tigon mutants --sample 20 --changed origin/main   of the files that differ from a "
      "commit\n"
      "Faults are records in harness/ops/*.faults; harness/mutants/README.md has the format. One "
      "is "
      "caught\nwhen a case fails that passes without it. Exit code 1 when one is not.");
  const auto options = std::make_shared<MutantOptions>();
  const auto output = std::make_shared<Output>();
  const auto positional = std::make_shared<std::vector<std::string>>();
  command.option("ops", positional.get(), "ops, as --op");
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
                  "mutants of each op's sources that are drawn by chance in place of the faults")
          .not_negative();
  command.option("--seed", &options->sample_seed, "of the draw (default: 1)").needs(sample);
  command
      .option("--changed", &options->changed,
              "a commit: draw from the kernels' files that differ from it")
      .needs(sample);
  command.flag("--list", &options->list, "print the faults instead of running them");
  command.flag("-v,--verbose", &options->verbose, "a line for every fault");
  add_output(command, output.get());
  command.run([=] {
    options->ops.insert(options->ops.end(), positional->begin(), positional->end());
    search_pattern("--filter", options->filter);
    SessionOptions session = session_options(*program, *output, 0);  // before anything is built
    if (options->sample > 0) {
      program->exit_code = sample_faults(options.get());
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
    program->exit_code =
        run_session(session, [&](Session& s) { return mutants_stage(s, *options); });
  });
}

}  // namespace tigon::cli
