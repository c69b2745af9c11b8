// SPDX-License-Identifier: Apache-2.0
// The launch table that calls of tigon.h take by themselves.
#pragma once
#include <string>

namespace tigon::call {

// Uses the entries of a file; returns what is wrong with it, "" if nothing is.
std::string load_launch_table(const std::string& path);

// Loads, once per process, the file that TIGON_LAUNCH_TABLE names, else tigon_launch_table.tsv
// beside this library if it is there. Returns as above, each time.
const std::string& default_launch_table_error();

}  // namespace tigon::call
