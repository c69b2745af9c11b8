// SPDX-License-Identifier: Apache-2.0
// tigon rounding: the budget's constants, measured on this device.
#include "harness/measure/rounding.h"

#include <fmt/format.h>

#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

int rounding_stage(Session& session) {
  fmt::print("{:<16} {:<26} {:>9} {:>8}  {}\n", "what", "range", "worst", "allowed", "in units of");
  bool within = true;
  measure_rounding([&](const RoundingResult& r) {
    const bool ok = r.worst <= r.allowed;
    within = within && ok;
    session.record("rounding", to_json(r));
    session.count(ok ? Verdict::kPassed : Verdict::kIncorrectNumerical);
    fmt::print("{:<16} {:<26} {} {:>8g}  {}\n", r.name, r.range,
               colored(fmt::format("{:>9.3f}", r.worst), ok ? Color::kGreen : Color::kRed),
               r.allowed, r.unit);
  });
  return within ? kExitOk : kExitIncorrect;
}

}  // namespace

void add_rounding(Command command, Program* program) {
  command.footer(
      "Measures c0 (elementary functions over dense ranges) and lambda (long sums, matrix "
      "products)\n"
      "against double on this device. Exit code 1: a constant of the budget is too small.");
  const auto output = std::make_shared<Output>();
  add_output(command, output.get());
  command.run([=] {
    program->exit_code = run_session(session_options(*program, *output, 42),
                                     [](Session& s) { return rounding_stage(s); });
  });
}

}  // namespace tigon::cli
