// SPDX-License-Identifier: Apache-2.0
// Appends records to a JSONL file: one line per record, on disk as soon as write() returns to the
// kernel, so a killed run keeps every finished line.
#pragma once
#include <filesystem>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/json/json.h"

namespace tigon {

// A record could not be written, e.g. because the disk is full. what() is one line; the program
// ends with exit code 5.
struct RecordError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every line starts with record, schema_version, run_id and time; `fields` follow, and then "sum",
// the checksum of the line (record_reader.h). Writing is thread-safe. The file is locked as long as
// the writer lives, so two runs never write to one file.
class RecordWriter {
 public:
  // Appends to the file, which it creates with its folder where they are missing; a torn last line
  // of a killed run is cut off. `known`: the bytes of the file that the caller has read, 0 for a
  // new run; a file that holds more or less is an error, because another run has written it since.
  // Throws RecordError.
  RecordWriter(std::filesystem::path path, std::string run_id,
               std::optional<uintmax_t> known = std::nullopt);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // `kind` is one of record.schema.json. Throws RecordError when the line does not fit; the lines
  // before it stay whole.
  void write(std::string_view kind, const Json& fields);

  // Makes everything durable (fsync). Throws RecordError. The destructor closes too, silently.
  void close();

  const std::filesystem::path& path() const { return path_; }
  const std::string& run_id() const { return run_id_; }

 private:
  void lock();
  void prepare(std::optional<uintmax_t> known);
  void append(const std::string& line);

  std::filesystem::path path_;
  std::string run_id_;
  std::mutex mutex_;
  int file_ = -1;
};

// JSON has no NaN and no infinity: each becomes null, and "nonfinite" of the outermost object maps
// its JSON pointer to "nan", "inf" or "-inf".
Json without_nonfinite(Json record);

}  // namespace tigon
