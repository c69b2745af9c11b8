// SPDX-License-Identifier: Apache-2.0
// tigon converge --controls: faults planted in kernels must make the evidence of a training fail;
// --seeds: kernels without one must not.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>

#include "convergence/controls.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/commands/experiments.h"
#include "harness/cli/text/converge_events.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/check.h"
#include "kernels/device/runtime.h"

namespace tigon::cli {
namespace {

namespace cv = convergence;

constexpr const char* kUnit = "controls";
constexpr const char* kGroup = "training";

std::filesystem::path program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tigon-controls";
}

// A request's model and steps; of a quick one the micro model.
std::string training_of(const cv::ConvergeRequest& request) {
  if (request.quick) return "micro";
  const cv::ModelConfig c = cv::evidence_config(request);
  return fmt::format("{}, {} steps", c.name, c.steps);
}

std::string command_line(const cv::ConvergeRequest& request) {
  const std::string start = fmt::format("'{}'", program().string());
  if (request.quick) return start;
  const cv::ModelConfig c = cv::evidence_config(request);
  return fmt::format("{} {} {}", start, c.name, c.steps);
}

Json fields_of(const cv::PartReport& p) {
  return {{"part", p.part}, {"verdict", p.verdict}, {"step", p.step}, {"reason", p.reason}};
}

Json fields_of(const std::vector<cv::PartReport>& parts) {
  Json list = Json::array();
  for (const cv::PartReport& p : parts) list.push_back(fields_of(p));
  return list;
}

// A record of kind "mutant"; without a fault the control is that nothing fails, and it has none.
Json fields_of(const Json& line, const std::string& training) {
  const bool faulty = line.at("fault") != "", failed = line.at("caught");
  if (!faulty && !failed) return {};
  return {{"mutant", faulty ? line.at("fault").get<std::string>() : "none"},
          {"what", line.at("what")},
          {"catalogue", 0},
          {"group", kGroup},
          {"outcome", !faulty  ? "invalid"
                      : failed ? "caught"
                               : "survived"},
          {"reason", failed ? line.at("reason").get<std::string>()
                            : "gradients and losses stay within their budgets"},
          {"parts", line.at("parts")},
          {"training", training},
          {"step", line.at("step")},
          {"executor", default_executor()},
          {"seconds_s", line.at("seconds_s")}};
}

// In the child.
void run_program(const Emit& emit, const cv::ConvergeRequest& request) {
  FILE* lines = popen(command_line(request).c_str(), "re");
  if (lines == nullptr) throw std::runtime_error("cannot start " + program().string());
  std::string line;
  for (int ch; (ch = std::getc(lines)) != EOF;) {
    if (ch != '\n') {
      line.push_back(static_cast<char>(ch));
      continue;
    }
    if (const Json fields = fields_of(Json::parse(line), training_of(request)); !fields.is_null())
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

int controls_stage(Session& session, const cv::ConvergeRequest& request) {
  ConvergeListener listener(&session);
  if (session.is_sealed(kUnit)) {
    for (const Json* r : session.resumed()->all("mutant"))
      if (r->value("group", "") == kGroup) listener.count_record("mutant", *r);
    return listener.tally().exit_code();
  }
  fmt::print("{}\n", colored("== controls ==", Color::kDim));
  std::fflush(stdout);
  const int code = run_unit(
      session, kUnit,
      [&](const Emit& emit, const std::atomic<bool>&) { run_program(emit, request); }, listener);
  const Tally& tally = listener.tally();
  fmt::print("{}\n", colored(fmt::format("{} of {} planted faults make the evidence fail",
                                         tally.passed(), tally.passed() + tally.failed()),
                             code == kExitOk ? Color::kGreen : Color::kRed));
  return code;
}

int seeds_stage(Session& session, const cv::ConvergeRequest& request, int seeds) {
  ConvergeListener listener(&session);
  constexpr const char* kSeeds = "seeds";
  if (session.is_sealed(kSeeds)) {
    for (const Json* r : session.resumed()->all("converge_seed"))
      listener.count_record("converge_seed", *r);
    return listener.tally().exit_code();
  }
  fmt::print("{}\n", colored("== seeds ==", Color::kDim));
  std::fflush(stdout);
  const int code = run_unit(
      session, kSeeds,
      [&](const Emit& emit, const std::atomic<bool>& stop) {
        const cv::EvidenceModel model =
            request.quick ? cv::micro_evidence() : cv::evidence_of(request);
        cv::run_seeds(model, seeds, stop, [&](const cv::SeedReport& r) {
          emit({{"record", "converge_seed"},
                {"fields",
                 {{"config", model.config.name},
                  {"steps", model.config.steps},
                  {"seed", r.seed},
                  {"executor", default_executor()},
                  {"parts", fields_of(r.parts)},
                  {"seconds_s", r.seconds_s}}}});
        });
      },
      listener);
  fmt::print("{}\n", colored(fmt::format("{} false alarms over {} seeds", listener.alarms(), seeds),
                             code == kExitOk ? Color::kGreen : Color::kRed));
  return code;
}

}  // namespace tigon::cli
