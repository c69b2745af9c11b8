// SPDX-License-Identifier: Apache-2.0
// One safetensors file a text.
#include "convergence/token_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "convergence/safetensors.h"

namespace tigon::convergence {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPrime = 0x100000001b3u;

fs::path file_of(const fs::path& folder, const std::string& key) {
  return folder / (key + ".safetensors");
}

template <class T>
TensorEntry entry(const char* name, const char* type, const std::vector<T>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  return {name, type, {count}, count * static_cast<int64_t>(sizeof(T))};
}

std::vector<uint8_t> bytes_of(const std::vector<bool>& flags) {
  return {flags.begin(), flags.end()};
}

template <class T>
std::vector<T> read(SafetensorsReader& in, size_t tensor) {
  std::vector<T> numbers(static_cast<size_t>(in.entries().at(tensor).bytes) / sizeof(T));
  in.read(numbers.data(), numbers.size() * sizeof(T));
  return numbers;
}

std::vector<bool> flags_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void Tokens::add(const std::vector<int32_t>& more, bool ignore) {
  ids.insert(ids.end(), more.begin(), more.end());
  ignored.insert(ignored.end(), more.size(), ignore);
}

// A token at a time.
uint64_t fingerprint(const TokenizedText& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * kPrime; };
  for (const Tokens* part : {&text.train, &text.held_out}) {
    add(part->ids.size());
    for (int32_t id : part->ids) add(static_cast<uint32_t>(id));
    for (bool ignored : part->ignored) add(ignored);
  }
  return hash;
}

void TokenKey::add(uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) hash_ = (hash_ ^ (number >> 8 * byte & 0xff)) * kPrime;
}

void TokenKey::add(std::string_view piece) {
  add(piece.size());
  for (const char c : piece) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * kPrime;
}

std::string TokenKey::hex() const { return fmt::format("{:016x}", hash_); }

std::optional<TokenizedText> find_tokens(const fs::path& folder, const std::string& key) {
  std::error_code missing;
  if (folder.empty() || !fs::exists(file_of(folder, key), missing)) return std::nullopt;
  try {
    SafetensorsReader in(file_of(folder, key));
    const Metadata& say = in.metadata();
    if (in.entries().size() != 4) return std::nullopt;
    TokenizedText text;
    text.train.ids = read<int32_t>(in, 0);
    text.train.ignored = flags_of(read<uint8_t>(in, 1));
    text.held_out.ids = read<int32_t>(in, 2);
    text.held_out.ignored = flags_of(read<uint8_t>(in, 3));
    text.entries = std::stoi(say.at("entries"));
    if (say.at("fingerprint") != fmt::format("{:016x}", fingerprint(text))) return std::nullopt;
    return text;
  } catch (const std::exception&) {  // cut off, or of something else
    return std::nullopt;
  }
}

void keep_tokens(const fs::path& folder, const std::string& key, const TokenizedText& text) {
  if (folder.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const std::vector<uint8_t> train = bytes_of(text.train.ignored);
  const std::vector<uint8_t> held_out = bytes_of(text.held_out.ignored);
  try {
    SafetensorsWriter out(
        file_of(folder, key),
        {entry("train", "I32", text.train.ids), entry("train.ignored", "U8", train),
         entry("held_out", "I32", text.held_out.ids), entry("held_out.ignored", "U8", held_out)},
        {{"format", "tigon tokens 1"},
         {"entries", std::to_string(text.entries)},
         {"fingerprint", fmt::format("{:016x}", fingerprint(text))}});
    const auto write = [&](const auto& numbers) {
      out.write(numbers.data(), numbers.size() * sizeof(numbers[0]));
    };
    write(text.train.ids);
    write(train);
    write(text.held_out.ids);
    write(held_out);
    out.commit();
  } catch (const ConvergeError&) {
  }
}

}  // namespace tigon::convergence
