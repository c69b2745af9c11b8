// SPDX-License-Identifier: Apache-2.0
// The lines and branches that cases take, by gcov.
#include "harness/cli/commands/check_lines.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/python.h"
#include "harness/record/build_info.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

namespace fs = std::filesystem;

// A folder that is gone with it.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tigon-lines-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder for gcov");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

int count_lines(Session& session, const std::vector<std::string>& case_ids) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "tigon-covered";
  if (access(program.c_str(), X_OK) != 0)
    throw UsageError(
        fmt::format("--lines: no program {}; ./tigon check --lines builds it", program.string()));
  const Folder folder;
  const fs::path cases = folder.path() / "cases", rows = folder.path() / "rows";
  {
    std::ofstream file(cases);
    for (const std::string& id : case_ids) file << id << "\n";
  }
  const int code = run_python(
      {"tigon_lines", program.string(), build_info().source_dir, cases.string(), rows.string()},
      {"harness/lines"}, "Python 3");
  std::ifstream file(rows);
  for (std::string line; std::getline(file, line);) session.record("lines", Json::parse(line));
  return code;
}

}  // namespace tigon::cli
