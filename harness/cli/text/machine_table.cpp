// SPDX-License-Identifier: Apache-2.0
// The launch table of this machine.
#include "harness/cli/text/machine_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "harness/cli/text/terminal.h"
#include "harness/judge/verdict.h"
#include "harness/measure/device_facts.h"
#include "harness/record/environment.h"
#include "kernels/device/launch_file.h"
#include "kernels/device/runtime.h"

namespace tigon::cli {

std::string machine_name() {
  const Json device = device_block();
  if (device.value("kind", "host") == "host")
    return "host executor on " + host_block().at("cpu").get<std::string>();
  return device.at("name");
}

namespace {

std::vector<LaunchEntry> read(const std::string& path) {
  try {
    return read_launch_file(path);
  } catch (const LaunchFileError& error) {
    throw UsageError(fmt::format("launch table {}", error.what()));
  }
}

}  // namespace

void examine_machine_table() {
  const char* path = std::getenv(kLaunchTableVariable);
  if (path == nullptr || *path == '\0') return;
  const std::vector<LaunchEntry> entries = read(path);
  const auto ours = std::count_if(entries.begin(), entries.end(), [](const LaunchEntry& e) {
    return e.device == current_device_name();
  });
  if (ours == 0 && !entries.empty())
    throw UsageError(fmt::format(
        "launch table {} was made on {} ({}), this is {}: not used; unset {} or make one with "
        "./tigon tune",
        path, entries.front().device, entries.front().date, current_device_name(),
        kLaunchTableVariable));
  print_error(fmt::format("launch table {}: {} of {} entries are of {}", path, ours, entries.size(),
                          current_device_name()));
}

}  // namespace tigon::cli
