// SPDX-License-Identifier: Apache-2.0
// Files of tensors in the safetensors format of Hugging Face: the length of a JSON header (8 bytes,
// little-endian), the header, then the tensors' bytes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "convergence/converge.h"

namespace tigon::convergence {

struct TensorEntry {
  std::string name;
  std::string type;  // "F32", "BF16", "F64", ...
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

using Metadata = std::map<std::string, std::string>;

// Writes beside the file and takes its place when all is there and on disk: who reads the path sees
// the old file or the new one, whenever the process is killed. Throws ConvergeError(5).
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::filesystem::path path, const std::vector<TensorEntry>& entries,
                    const Metadata& metadata);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // The next bytes of the tensors in the order of the entries.
  void write(const void* data, size_t bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_, temporary_;
  int file_ = -1;
};

// Throws ConvergeError(2) for a file that is not whole.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);

  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorEntry>& entries() const { return entries_; }  // in file order
  // The next bytes of the tensors.
  void read(void* data, size_t bytes);

 private:
  [[noreturn]] void fail(const std::string& what) const;

  std::filesystem::path path_;
  std::ifstream in_;
  Metadata metadata_;
  std::vector<TensorEntry> entries_;
};

}  // namespace tigon::convergence
