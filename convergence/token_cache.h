// SPDX-License-Identifier: Apache-2.0
// Token ids of texts that were tokenized before, in a folder that may be deleted at any time.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tigon::convergence {

struct Tokens {
  std::vector<int32_t> ids;
  std::vector<bool> ignored;  // as targets; empty: none
  int64_t size() const { return static_cast<int64_t>(ids.size()); }
  void add(const std::vector<int32_t>& more, bool ignore);
};

struct TokenizedText {
  Tokens train, held_out;
  int entries = 0;  // ids are smaller
};

// Of all token ids of both parts.
uint64_t fingerprint(const TokenizedText& text);

// FNV-1a of all that token ids depend on, piece by piece.
class TokenKey {
 public:
  void add(std::string_view piece);
  void add(uint64_t number);
  std::string hex() const;

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

// What was kept in the folder under that key; nothing when it is not whole.
std::optional<TokenizedText> find_tokens(const std::filesystem::path& folder,
                                         const std::string& key);

// Makes the folder where it is missing. One that cannot be written keeps nothing.
void keep_tokens(const std::filesystem::path& folder, const std::string& key,
                 const TokenizedText& text);

}  // namespace tigon::convergence
