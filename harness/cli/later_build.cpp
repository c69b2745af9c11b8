// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/later_build.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "harness/cli/text/terminal.h"
#include "harness/run/check.h"

namespace tigon::cli {

namespace {

struct Steps {
  int done = 0, all = 0;
};

// As the last whole line of ninja's says.
Steps steps_of(const std::string& log) {
  Steps last;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line) && !lines.eof();)
    if (Steps s; std::sscanf(line.c_str(), "[%d/%d]", &s.done, &s.all) == 2) last = s;
  return last;
}

}  // namespace

LaterBuild::LaterBuild(const std::string& command, std::string log) : log_(std::move(log)) {
  if (command.empty()) return;
  std::filesystem::remove(log_);
  process_.start({.words = {"sh", "-c", command}, .output = log_});
}

void LaterBuild::wait() {
  if (!process_.is_started()) return;
  show_until_it_ends();
  if (interrupted()) return;
  if (process_.hear({}).text != "0")
    throw std::runtime_error(fmt::format("building failed, see {}", log_));
}

void LaterBuild::show_until_it_ends() {
  constexpr auto kPause = std::chrono::milliseconds(100);
  std::optional<Progress> progress;  // of the steps that are left now
  int shown = 0;
  for (; !process_.is_gone() && !interrupted(); std::this_thread::sleep_for(kPause)) {
    const Steps steps = steps_of(log_);
    if (!progress && steps.all > 0) {
      progress.emplace("building", steps.all - steps.done);
      progress->begin("what this stage starts");
      shown = steps.done;
    }
    for (; shown < steps.done; ++shown) progress->step("");
  }
}

}  // namespace tigon::cli
