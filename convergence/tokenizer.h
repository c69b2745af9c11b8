// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding (Gage 1994; Sennrich et al. 2016), trained on the text it encodes
// or made elsewhere (tokenizer_file.h).
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tigon::convergence {

// A vocabulary that was made elsewhere.
struct TokenizerParts {
  struct Merge {
    int32_t left, right, id;
  };
  std::vector<std::string> bytes;  // of each id
  std::array<int32_t, 256> byte_id{};
  std::vector<Merge> merges;  // the first one goes first
  int32_t end_of_text = -1;   // -1: there is none
};

// Of a trained one, ids 0..255 are the bytes, so every text has an encoding and decode(encode(t))
// == t. Every further id is a pair of smaller ids, in the order of training: the most frequent pair
// first, ties to the pair of smaller ids, so the same text always gives the same vocabulary. Pairs
// do not cross words; a word is a run of letters, of digits or of other signs with the space before
// it, or white space.
class Tokenizer {
 public:
  // At most `entries` (>= 256) ids from the first 8 MiB of `text`; fewer when no pair is left that
  // occurs twice.
  static Tokenizer train(std::string_view text, int entries);

  // Splits words as GPT-2 does: "'s" and its like, a run of letters, of digits or of signs with the
  // space before it, white space.
  explicit Tokenizer(TokenizerParts parts);

  std::vector<int32_t> encode(std::string_view text) const;
  // Throws std::out_of_range for an id that is not below size().
  std::string decode(const std::vector<int32_t>& ids) const;
  int size() const { return static_cast<int>(bytes_.size()); }
  // What stands between two texts: an entry of its own, else the byte 0.
  int32_t end_of_text() const { return end_of_text_; }

 private:
  Tokenizer();
  int32_t add_pair(int32_t left, int32_t right);
  std::vector<int32_t> encode_word(std::string_view word) const;

  struct Merge {
    int32_t rank, id;  // the lowest rank goes first
  };
  std::vector<std::string> bytes_;  // of each id
  std::array<int32_t, 256> byte_id_{};
  std::unordered_map<uint64_t, Merge> merge_;  // key: left id, right id
  int32_t end_of_text_ = 0;
  bool contractions_ = false;  // "'s" and its like are words
};

}  // namespace tigon::convergence
