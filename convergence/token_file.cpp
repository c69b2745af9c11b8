// SPDX-License-Identifier: Apache-2.0
// Raw token ids and NumPy arrays.
#include "convergence/token_file.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <string>

#include "convergence/converge.h"

namespace tigon::convergence {
namespace {

struct NumberType {
  const char* name;  // as NumPy writes it
  size_t bytes;
  bool is_signed;
};
constexpr NumberType kTypes[] = {
    {"<u2", 2, false}, {"<u4", 4, false}, {"<i4", 4, true}, {"<i8", 8, true}};

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& problem) {
  throw ConvergeError(2, fmt::format("{}: {}", path.string(), problem));
}

// The type of a .npy file and where its numbers begin.
std::pair<NumberType, size_t> npy_header(const std::filesystem::path& path,
                                         const std::string& bytes) {
  constexpr const char* kRight =
      "write a one-dimensional array of uint16, uint32, int32 or int64 with numpy.save";
  const auto byte = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(bytes[i]));
  };
  if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0)
    refuse(path, fmt::format("no NumPy array; {}", kRight));
  const bool first_version = bytes[6] == 1;
  const size_t start = first_version ? 10 : 12;
  const size_t length =
      byte(8) | byte(9) << 8 | (first_version ? 0 : byte(10) << 16 | byte(11) << 24);
  const std::string header = bytes.substr(start, length);
  std::smatch type, shape;
  const bool known = std::regex_search(header, type, std::regex("'descr': *'([^']*)'")) &&
                     std::regex_search(header, shape, std::regex("'shape': *\\([0-9]+,\\)"));
  if (known)
    for (const NumberType& t : kTypes)
      if (type[1] == t.name) return {t, start + length};
  refuse(path, fmt::format("an array of another kind ({}); {}", header.substr(0, 80), kRight));
}

int64_t number_at(const char* at, const NumberType& type) {
  const auto as = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<int64_t>(value);
  };
  if (type.bytes == 2) return as(uint16_t{});
  if (type.bytes == 8) return as(int64_t{});
  return type.is_signed ? as(int32_t{}) : as(uint32_t{});
}

}  // namespace

bool is_token_file(const std::filesystem::path& path) {
  return path.extension() == ".bin" || path.extension() == ".npy";
}

std::vector<int32_t> read_token_file(const std::filesystem::path& path, int vocabulary) {
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, "cannot be read");
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  constexpr int kMost16 = 1 << 16;
  NumberType type = vocabulary <= kMost16 ? kTypes[0] : kTypes[1];
  size_t begin = 0;
  if (path.extension() == ".npy") std::tie(type, begin) = npy_header(path, bytes);
  if (bytes.size() < begin || (bytes.size() - begin) % type.bytes != 0)
    refuse(path, fmt::format("{} bytes are no whole number of {}-byte ids", bytes.size() - begin,
                             type.bytes));
  std::vector<int32_t> ids;
  ids.reserve((bytes.size() - begin) / type.bytes);
  for (size_t at = begin; at < bytes.size(); at += type.bytes) {
    const int64_t id = number_at(&bytes[at], type);
    if (id < 0 || id >= vocabulary)
      refuse(path, fmt::format("token {} has id {}, the model has {} entries: give --vocabulary at "
                               "least {}, or a file of {}-byte ids",
                               ids.size(), id, vocabulary, id + 1, type.bytes));
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace tigon::convergence
