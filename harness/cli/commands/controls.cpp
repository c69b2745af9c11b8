// SPDX-License-Identifier: Apache-2.0
// tigon converge --controls: faults planted in kernels must make the evidence of a training fail.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>

#include "harness/cli/commands/converge_options.h"
#include "harness/cli/commands/experiments.h"
#include "harness/cli/text/converge_events.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/check.h"
#include "kernels/device/runtime.h"

namespace tigon::cli {
namespace {

constexpr const char* kUnit = "controls";
constexpr const char* kGroup = "training";

std::filesystem::path program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tigon-controls";
}

// A record of kind "mutant"; without a fault the control is that nothing fails, and it has none.
Json fields_of(const Json& line) {
  const bool faulty = line.at("fault") != "", failed = line.at("caught");
  if (!faulty && !failed) return {};
  Json fields = {{"mutant", faulty ? line.at("fault").get<std::string>() : "none"},
                 {"what", line.at("what")},
                 {"catalogue", 0},
                 {"group", kGroup},
                 {"outcome", !faulty  ? "invalid"
                             : failed ? "caught"
                                      : "survived"},
                 {"reason", failed ? line.at("reason").get<std::string>()
                                   : "gradients and losses stay within their budgets"},
                 {"step", line.at("step")},
                 {"executor", default_executor()},
                 {"seconds_s", line.at("seconds_s")}};
  if (line.at("dtype") != "") fields["dtype"] = line.at("dtype");
  return fields;
}

// In the child.
void run_program(const Emit& emit) {
  FILE* lines = popen(fmt::format("'{}'", program().string()).c_str(), "re");
  if (lines == nullptr) throw std::runtime_error("cannot start " + program().string());
  std::string line;
  for (int ch; (ch = std::getc(lines)) != EOF;) {
    if (ch != '\n') {
      line.push_back(static_cast<char>(ch));
      continue;
    }
    if (const Json fields = fields_of(Json::parse(line)); !fields.is_null())
      emit({{"record", "mutant"}, {"fields", fields}});
    line.clear();
  }
  if (const int status = pclose(lines); !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(fmt::format("tigon-controls ended with status {}", status));
}

}  // namespace

void require_controls_program() {
  if (!std::filesystem::exists(program()))
    throw MissingData("this build has no program tigon-controls; build with TIGON_TESTS=ON");
}

int controls_stage(Session& session) {
  ConvergeListener listener(&session);
  if (session.is_sealed(kUnit)) {
    for (const Json* r : session.resumed()->all("mutant"))
      if (r->value("group", "") == kGroup) listener.count_record("mutant", *r);
    return listener.tally().exit_code();
  }
  fmt::print("{}\n", colored("== controls ==", Color::kDim));
  std::fflush(stdout);
  const int code = run_unit(
      session, kUnit, [](const Emit& emit, const std::atomic<bool>&) { run_program(emit); },
      listener);
  const Tally& tally = listener.tally();
  fmt::print("{}\n", colored(fmt::format("{} of {} planted faults make the evidence fail",
                                         tally.passed(), tally.passed() + tally.failed()),
                             code == kExitOk ? Color::kGreen : Color::kRed));
  return code;
}

}  // namespace tigon::cli
