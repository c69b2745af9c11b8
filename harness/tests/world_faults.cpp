// SPDX-License-Identifier: Apache-2.0
// Injects every fault of the world, prints what became of it and writes a "fault" record for each.
//   world_faults [--out DIR | --json FILE] [--only TEXT] [--kills N]
// Exit code 0 when all were survived, 1 when one was not, 4 when nothing was injected.
#include "harness/tests/world_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "harness/cli/options/command_line.h"
#include "harness/cli/session.h"
#include "harness/measure/device_facts.h"

namespace tigon::world {

int kills = 100;  // of record_faults()

namespace {

struct Counts {
  int survived = 0, lost = 0, skipped = 0;
};

Outcome injected(const Fault& fault) {
  try {
    return fault.inject();
  } catch (const std::exception& error) {
    return {fmt::format("the test itself failed: {}", error.what()), {}, {}, -1};
  }
}

void run_one(const Fault& fault, cli::Session& session, Counts* counts) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome o = injected(fault);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const bool skipped = !o.skipped.empty(), survived = !skipped && o.problem.empty();
  ++(skipped ? counts->skipped : survived ? counts->survived : counts->lost);
  session.count(skipped    ? Verdict::kSkipped
                : survived ? Verdict::kPassed
                           : Verdict::kIncorrectNumerical);
  session.record("fault", {{"fault", fault.name},
                           {"group", fault.group},
                           {"expected", fault.expected},
                           {"outcome", skipped    ? "skipped"
                                       : survived ? "survived"
                                                  : "not_survived"},
                           {"reason", skipped ? o.skipped : o.problem},
                           {"verdict", o.verdict},
                           {"exit_code", o.exit_code < 0 ? Json() : Json(o.exit_code)},
                           {"seconds_s", seconds.count()}});
  fmt::print("{:<8} {:<15} {:<48} {:<28} {:5.1f} s{}{}\n",
             skipped    ? "skipped"
             : survived ? "survived"
                        : "LOST",
             fault.group, fault.name, fault.expected, seconds.count(),
             skipped || !survived ? "  " : "", skipped ? o.skipped : o.problem);
  std::fflush(stdout);
}

// One of `texts` is in the fault's group and name; without texts all are meant.
bool is_meant(const Fault& fault, const std::vector<std::string>& texts) {
  const std::string name = fault.group + " " + fault.name;
  return texts.empty() || std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
           return name.find(text) != std::string::npos;
         });
}

int run_all(cli::Session& session, const std::vector<std::string>& only) {
  Counts counts;
  for (const auto& group : {kernel_faults(), plugin_faults(), file_faults(), system_faults(),
                            record_faults(), machine_faults(), input_faults()})
    for (const Fault& fault : group)
      if (is_meant(fault, only) && !interrupted()) run_one(fault, session, &counts);
  fmt::print("{} of {} faults survived, {} could not be injected here\n", counts.survived,
             counts.survived + counts.lost, counts.skipped);
  return counts.lost > 0 ? kExitIncorrect : counts.survived > 0 ? kExitOk : kExitNothing;
}

int main_of(int argc, char** argv) {
  cli::CommandLine line("injects faults of the world into runs and says which were survived",
                        "./tigon faults");
  cli::SessionOptions options;
  std::vector<std::string> only;
  const cli::Command program = line.program();
  program.option("--out", &options.out, "folder of the results (default: results/<run_id>)");
  program.option("--json", &options.json, "records file in place of the folder's");
  program.list("--only", &only, "those whose group and name hold one of these texts");
  program.option("--kills", &kills, "how often a run is killed and continued (default: 100)")
      .positive();
  if (const auto code = line.parse({argv + 1, argv + argc})) return *code;
  options.command = {"./tigon", "faults"};
  for (int i = 1; i < argc; ++i) options.command.push_back(argv[i]);
  install_interrupt_handler();
  try {
    return cli::run_session(options, [&](cli::Session& s) { return run_all(s, only); });
  } catch (const UsageError& error) {
    fmt::print(stderr, "tigon: {}\n", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tigon: {}\n", error.what());
    return kExitInfrastructure;
  }
}

}  // namespace
}  // namespace tigon::world

int main(int argc, char** argv) { return tigon::world::main_of(argc, argv); }
