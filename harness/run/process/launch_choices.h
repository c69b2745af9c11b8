// Launch shapes as text, and the table of this process' environment.
#pragma once
#include <string>

#include "kernels/device/launch_table.h"

namespace tigon {

// "256 lanes x 2, 2/SM, 3 stages": lanes, vectors of each, blocks, and what is not 1.
std::string describe(const LaunchShape& shape);

// In a child: uses the file that the parent has examined, if any.
void use_launch_file_of_environment();

}  // namespace tigon
