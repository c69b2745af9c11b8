// The launch table of this machine.
#include "harness/cli/machine_table.h"

#include <fmt/format.h>

#include <cstdlib>

#include "harness/cli/terminal.h"
#include "harness/judge/verdict.h"
#include "harness/measure/device_facts.h"
#include "harness/record/environment.h"
#include "harness/run/launch_choices.h"

namespace tigon::cli {

std::string machine_name() {
  const Json device = device_block();
  if (device.value("kind", "host") == "host")
    return "host executor on " + host_block().at("cpu").get<std::string>();
  return device.at("name");
}

void use_machine_table() {
  const char* path = std::getenv(kLaunchTableVariable);
  if (path == nullptr || *path == '\0') return;
  const LaunchFile file = read_launch_file(path);
  const std::string here = machine_name();
  if (file.machine != here)
    throw UsageError(fmt::format(
        "launch table {} was made on {} ({}), this is {}: not used; unset {} or make one with "
        "./tigon tune",
        path, file.machine, file.date, here, kLaunchTableVariable));
  use_launch_file(file);
  print_error(fmt::format("launch table {} of {} ({}), {} entries", path, file.machine, file.date,
                          file.entries.size()));
}

}  // namespace tigon::cli
