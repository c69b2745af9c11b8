// SPDX-License-Identifier: Apache-2.0
// Reads records back.
#include "harness/record/record_reader.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace tigon {
namespace {

constexpr std::string_view kSumStart = ",\"sum\":\"";
constexpr size_t kSumBytes = kSumStart.size() + 8 + 2;  // with the digits and "}

uint32_t crc32(std::string_view text) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = (t[i] >> 1) ^ (t[i] & 1 ? 0xEDB88320u : 0u);
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (const char c : text) crc = table[(crc ^ static_cast<unsigned char>(c)) & 255] ^ (crc >> 8);
  return ~crc;
}

// Whether `end` is a sum's member, or would be but for one byte: damage there must not make the
// line one that never had a sum.
bool is_sum_member(std::string_view end) {
  int wrong = (end[kSumBytes - 2] != '"') + (end[kSumBytes - 1] != '}');
  for (size_t i = 0; i < kSumStart.size(); ++i) wrong += end[i] != kSumStart[i];
  return wrong <= 1;
}

// False when the line has a sum and it is not that of its bytes.
bool sum_is_right(std::string_view line) {
  if (line.size() < kSumBytes) return true;
  const std::string_view end = line.substr(line.size() - kSumBytes);
  if (!is_sum_member(end)) return true;
  const std::string_view object = line.substr(0, line.size() - kSumBytes);
  return end == fmt::format("{}{:08x}\"}}", kSumStart, crc32(object));
}

}  // namespace

std::string with_sum(std::string object) {
  object.pop_back();  // the brace
  return fmt::format("{}{}{:08x}\"}}", object, kSumStart, crc32(object));
}

std::optional<Json> parse_record(std::string_view line) {
  if (!sum_is_right(line)) return std::nullopt;
  auto record = Json::try_parse(line);
  if (!record || !record->is_object()) return std::nullopt;
  const auto kind = record->find("record");
  if (kind == record->end() || !kind->is_string()) return std::nullopt;
  record->erase("sum");
  return record;
}

RecordFile read_records(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw RecordError(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  RecordFile file;
  for (std::string line; std::getline(stream, line);) {
    file.bytes += line.size();
    if (stream.eof()) {  // no newline behind it
      file.torn = true;
      break;
    }
    ++file.bytes;
    if (auto record = parse_record(line))
      file.records.push_back(std::move(*record));
    else
      ++file.damaged;
  }
  if (stream.bad())
    throw RecordError(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  return file;
}

}  // namespace tigon
