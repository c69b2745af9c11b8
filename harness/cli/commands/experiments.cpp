// SPDX-License-Identifier: Apache-2.0
// tigon converge --experiment, --all: the papers' claims, and one table of what was found.
#include "harness/cli/commands/experiments.h"

#include <fmt/format.h>

#include <map>

#include "harness/cli/text/converge_events.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

namespace cv = convergence;

// The records of an experiment that a run to continue has finished.
std::vector<Json> finished_claims(const Session& session, const std::string& name) {
  std::vector<Json> claims;
  for (const Json* claim : session.resumed()->all("claim"))
    if (claim->value("experiment", "") == name) claims.push_back(*claim);
  return claims;
}

int run_one(Session& session, const std::string& name, const cv::ExperimentSettings& settings,
            std::vector<Json>& claims) {
  ConvergeListener listener(&session);
  const std::string unit = "experiment " + name;
  if (session.is_sealed(unit)) {
    for (const Json& claim : finished_claims(session, name)) {
      listener.count_record("claim", claim);
      claims.push_back(claim);
    }
    return listener.tally().exit_code();
  }
  fmt::print("{}\n", colored(fmt::format("== {} ==", name), Color::kDim));
  std::fflush(stdout);
  const int code = run_unit(
      session, unit,
      [&](const Emit& emit, const std::atomic<bool>& stop) {
        const cv::ConvergeObserver observer = observer_of(emit);
        for (const cv::ClaimReport& claim : cv::run_experiment(name, {settings, observer, &stop}))
          emit_claim(emit, claim);
      },
      listener);
  claims.insert(claims.end(), listener.claims().begin(), listener.claims().end());
  return code;
}

Color color_of(const std::string& verdict) {
  if (verdict == "holds") return Color::kGreen;
  return verdict == "does not hold" ? Color::kRed : Color::kDim;
}

void print_table(const std::vector<Json>& claims) {
  if (claims.empty()) return;
  fmt::print("\n{:<14} {:<48} {:>8} {:>9}  {:<12} {:<18} {}\n", "experiment", "claim", "claimed",
             "found", "from", "verdict", "on");
  std::map<std::string, int> counts;
  for (const Json& r : claims) {
    const auto text = [&](const char* key) { return r.value(key, ""); };
    const std::string verdict = text("verdict");
    ++counts[verdict];
    fmt::print("{:<14} {:<48} {:>8} {:>9}  {:<12} {} {}\n", text("experiment"), text("claim"),
               text("paper"), text("measured"), text("from"),
               colored(fmt::format("{:<18}", verdict), color_of(verdict)), text("on"));
  }
  fmt::print("claims: {} hold, {} do not, {} not measured here, {} of other data\n",
             counts["holds"], counts["does not hold"], counts["not measured here"],
             counts["other data"]);
}

}  // namespace

int experiments_stage(Session& session, const std::vector<std::string>& names,
                      const cv::ExperimentSettings& settings) {
  int code = kExitOk;
  std::vector<Json> claims;
  for (const std::string& name : names) {
    if (interrupted()) break;
    code = combined(code, run_one(session, name, settings, claims));
  }
  print_table(claims);
  return interrupted() ? static_cast<int>(kExitInterrupted) : code;
}

}  // namespace tigon::cli
