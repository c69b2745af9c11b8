// SPDX-License-Identifier: Apache-2.0
// Reading and writing safetensors.
#include "convergence/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "harness/json/json.h"

namespace tigon::convergence {
namespace {

static_assert(std::endian::native == std::endian::little);  // as the format is

constexpr const char* kMetadata = "__metadata__";
constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit

std::string header_of(const std::vector<TensorEntry>& entries, const Metadata& metadata) {
  Json header = Json::object();
  header[kMetadata] = metadata;
  int64_t at = 0;
  for (const TensorEntry& e : entries) {
    header[e.name] = {{"dtype", e.type}, {"shape", e.shape}, {"data_offsets", {at, at + e.bytes}}};
    at += e.bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the data begin aligned
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path,
                                     const std::vector<TensorEntry>& entries,
                                     const Metadata& metadata)
    : path_(std::move(path)), temporary_(path_.string() + ".part") {
  std::error_code error;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), error);
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) fail("cannot create");
  const std::string header = header_of(entries, metadata);
  const uint64_t length = header.size();
  write(&length, sizeof length);
  write(header.data(), header.size());
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_ < 0) return;
  close(file_);
  unlink(temporary_.c_str());
}

void SafetensorsWriter::fail(const char* what) const {
  throw ConvergeError(5, fmt::format("{} {}: {}", what, temporary_.string(), strerror(errno)));
}

void SafetensorsWriter::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(file_, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot write");
    from += n;
    bytes -= static_cast<size_t>(n);
  }
}

void SafetensorsWriter::commit() {
  if (fsync(file_) != 0) fail("cannot write");
  if (close(std::exchange(file_, -1)) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    unlink(temporary_.c_str());
    fail("cannot finish");
  }
  // The new name, too, outlives a loss of power.
  const std::filesystem::path parent = path_.has_parent_path() ? path_.parent_path() : ".";
  const int folder = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

void SafetensorsReader::fail(const std::string& what) const {
  throw ConvergeError(2,
                      fmt::format("{} is not a whole safetensors file: {}", path_.string(), what));
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : path_(path), in_(path, std::ios::binary) {
  uint64_t length = 0;
  if (!in_) fail("it cannot be read");
  if (!in_.read(reinterpret_cast<char*>(&length), sizeof length) || length > kLongestHeader)
    fail("no header");
  std::string text(length, '\0');
  if (!in_.read(text.data(), static_cast<std::streamsize>(length))) fail("its header is cut off");
  int64_t end = 0;
  try {
    const Json header = Json::parse(text);
    if (header.contains(kMetadata)) metadata_ = header.at(kMetadata).get<Metadata>();
    // Files need not name them in their order; an empty one begins where the next one does.
    std::multimap<std::pair<int64_t, int64_t>, TensorEntry> by_place;
    for (const auto& [name, tensor] : header.items()) {
      if (name == kMetadata) continue;
      const auto offsets = tensor.at("data_offsets").get<std::vector<int64_t>>();
      if (offsets.size() != 2 || offsets[1] < offsets[0])
        fail(fmt::format("{} has no place", name));
      by_place.insert({{offsets[0], offsets[1]},
                       {name, tensor.at("dtype").get<std::string>(),
                        tensor.at("shape").get<std::vector<int64_t>>(), offsets[1] - offsets[0]}});
    }
    for (auto& [place, entry] : by_place) {
      if (place.first != end)
        fail(fmt::format("the bytes of {} do not follow those before", entry.name));
      end += entry.bytes;
      entries_.push_back(std::move(entry));
    }
  } catch (const Json::Error&) {
    fail("its header is not what it should be");
  }
  const uint64_t want = sizeof length + length + static_cast<uint64_t>(end);
  std::error_code ignored;
  if (const uint64_t size = std::filesystem::file_size(path, ignored); size != want)
    fail(fmt::format("it has {} bytes instead of {}", size, want));
}

void SafetensorsReader::read(void* data, size_t bytes) {
  if (!in_.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes)))
    fail("it ends too early");
}

}  // namespace tigon::convergence
