// SPDX-License-Identifier: Apache-2.0
// stdout into a file.
#include "harness/cli/text/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/record/record_writer.h"

namespace tigon::cli {

OutputFile::OutputFile(const std::filesystem::path& file) {
  std::fflush(stdout);
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (opened < 0)
    throw RecordError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
  terminal_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  dup2(opened, STDOUT_FILENO);
  close(opened);
}

OutputFile::~OutputFile() {
  std::fflush(stdout);
  dup2(terminal_, STDOUT_FILENO);
  close(terminal_);
}

}  // namespace tigon::cli
