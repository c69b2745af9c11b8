// A launch table as a file: what `tigon tune` found on one machine.
#pragma once
#include <string>
#include <vector>

#include "kernels/device/launch_table.h"

namespace tigon {

struct LaunchEntry {
  LaunchTable::Key key;
  LaunchShape shape{};
  std::string case_id;               // that was measured
  double before_s = 0, after_s = 0;  // with the shape that is taken by itself, and with this one
};
struct LaunchFile {
  std::string machine, date, executor, commit;
  std::vector<LaunchEntry> entries;
};

// "256 lanes x 2, 2/SM, 3 stages": lanes, vectors of each, blocks, and what is not 1.
std::string describe(const LaunchShape& shape);

// Throw UsageError, one line.
LaunchFile read_launch_file(const std::string& path);
void write_launch_file(const std::string& path, const LaunchFile& file);

// Lets the kernels of this process take its shapes.
void use_launch_file(const LaunchFile& file);

// The variable that names the file to use; a program's children inherit it.
inline constexpr const char* kLaunchTableVariable = "TIGON_LAUNCH_TABLE";
// In a child: uses the file that the parent has examined, if any.
void use_launch_file_of_environment();

}  // namespace tigon
