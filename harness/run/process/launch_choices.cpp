// Launch shapes as text, and the table of this process' environment.
#include "harness/run/process/launch_choices.h"

#include <fmt/format.h>

#include <cstdlib>

#include "kernels/device/launch_file.h"

namespace tigon {

std::string describe(const LaunchShape& s) {
  std::string text = fmt::format("{} lanes", s.lanes);
  if (s.vectors > 0) text += fmt::format(" x {}", s.vectors);
  text += fmt::format(", {}/SM", s.blocks_per_sm);
  if (s.stages > 1) text += fmt::format(", {} stages", s.stages);
  if (s.cluster > 1) text += fmt::format(", cluster {}", s.cluster);
  return text;
}

void use_launch_file_of_environment() {
  const char* path = std::getenv(kLaunchTableVariable);
  if (path != nullptr && *path != '\0') use_launch_entries(read_launch_file(path));
}

}  // namespace tigon
