// Byte-level byte-pair encoding, trained on the text it encodes (Gage 1994; Sennrich et al. 2016).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tigon::convergence {

// Ids 0..255 are the bytes, so every text has an encoding and decode(encode(t)) == t. Every further
// id is a pair of smaller ids, in the order of training: the most frequent pair first, ties to the
// pair of smaller ids, so the same text always gives the same vocabulary. Pairs do not cross words;
// a word is a run of letters, of digits or of other signs with the space before it, or white space.
class Tokenizer {
 public:
  // At most `entries` (>= 256) ids from the first 8 MiB of `text`; fewer when no pair is left that
  // occurs twice. The licence texts of Debian (240 kB) take 0.1 s for 4,096 ids.
  static Tokenizer train(std::string_view text, int entries);

  std::vector<int32_t> encode(std::string_view text) const;
  // Throws std::out_of_range for an id that is not below size().
  std::string decode(const std::vector<int32_t>& ids) const;
  int size() const { return static_cast<int>(bytes_.size()); }

 private:
  Tokenizer();
  int32_t add_pair(int32_t left, int32_t right);
  std::vector<int32_t> encode_word(std::string_view word) const;

  std::vector<std::string> bytes_;                 // of each id
  std::unordered_map<uint64_t, int32_t> pair_id_;  // key: left id, right id
};

}  // namespace tigon::convergence
