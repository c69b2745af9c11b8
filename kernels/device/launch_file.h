// SPDX-License-Identifier: Apache-2.0
// Launch tables as files: which shape a kernel takes for which rows, on which device, as
// `tigon tune` has measured it. Tab-separated columns under a line of their names:
//   device  date  executor  commit  table  size  lanes  vectors  blocks_per_sm  stages  cluster
//   case_id  before_s  after_s
// A file may hold the entries of several devices; a launch takes those of its own.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/device/launch_table.h"

namespace tigon {

struct LaunchEntry {
  std::string device;  // as device_name() says
  std::string date, executor, commit;
  LaunchTable::Key key;
  LaunchShape shape{};
  std::string case_id;               // that was measured
  double before_s = 0, after_s = 0;  // with the shape that is taken by itself, and with this one
};

// "FILE:LINE: what is wrong, and what would be right".
struct LaunchFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Both throw LaunchFileError.
std::vector<LaunchEntry> read_launch_file(const std::string& path);
void write_launch_file(const std::string& path, const std::vector<LaunchEntry>& entries);

// Lets launches take the shapes of these entries, each on its device.
void use_launch_entries(const std::vector<LaunchEntry>& entries);

// Names the file that is used without being asked for; "" for none.
inline constexpr const char* kLaunchTableVariable = "TIGON_LAUNCH_TABLE";

}  // namespace tigon
