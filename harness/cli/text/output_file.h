// SPDX-License-Identifier: Apache-2.0
// What is printed goes into a file for a while.
#pragma once
#include <filesystem>

namespace tigon::cli {

// As long as it lives, stdout, also that of processes that are started, is appended to a file.
class OutputFile {
 public:
  // Throws RecordError when the file cannot be written.
  explicit OutputFile(const std::filesystem::path& file);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

 private:
  int terminal_;
};

}  // namespace tigon::cli
