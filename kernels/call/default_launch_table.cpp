// SPDX-License-Identifier: Apache-2.0
// Loads launch tables for the calls of tigon.h.
#include "kernels/call/default_launch_table.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>

#include "kernels/device/launch_file.h"

namespace tigon::call {
namespace {

// The folder of this library or program, with a slash behind it.
std::string own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

bool exists(const std::string& path) { return std::ifstream(path).good(); }

}  // namespace

std::string load_launch_table(const std::string& path) {
  try {
    use_launch_entries(read_launch_file(path));
    return "";
  } catch (const LaunchFileError& error) {
    return std::string("launch table ") + error.what();
  }
}

const std::string& default_launch_table_error() {
  static const std::string error = [] {
    const char* named = std::getenv(kLaunchTableVariable);
    if (named != nullptr) return *named == '\0' ? std::string() : load_launch_table(named);
    const std::string beside = own_folder() + "tigon_launch_table.tsv";
    return exists(beside) ? load_launch_table(beside) : std::string();
  }();
  return error;
}

}  // namespace tigon::call
