// SPDX-License-Identifier: Apache-2.0
// Reads the records of a run back, as `--resume` needs them: only what was surely written counts.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/record_writer.h"

namespace tigon {

// The line of a JSON object with `"sum":"<8 hex digits>"` as its last member: the CRC-32 (that of
// zlib and of Python's zlib.crc32) of the text before `,"sum"`.
std::string with_sum(std::string object);

// The record of one line, without its sum. Nothing when it is no JSON object with the string
// "record", when its bytes do not match its sum, or when it nests deeper than any record does. A
// line without a sum (written by other tools) is taken as it is.
std::optional<Json> parse_record(std::string_view line);

struct RecordFile {
  std::vector<Json> records;  // in file order
  size_t damaged = 0;         // whole lines that are no records
  bool torn = false;          // the last line has no end, and is left out
  uintmax_t bytes = 0;        // that were read, the torn line's too
};

// Throws RecordError when the file cannot be read.
RecordFile read_records(const std::filesystem::path& path);

}  // namespace tigon
