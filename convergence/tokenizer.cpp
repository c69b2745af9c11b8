// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: counts of adjacent pairs are kept up to date while pairs are merged.
#include "convergence/tokenizer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <stdexcept>

namespace tigon::convergence {
namespace {

constexpr size_t kTrainingBytes = size_t{8} << 20;  // more text hardly changes the first pairs
constexpr int64_t kFewest = 2;                      // a pair seen once would be one place's name

enum class Kind { kLetter, kDigit, kSpace, kSign };

Kind kind_of(char c) {
  const auto b = static_cast<unsigned char>(c);
  if (b >= 0x80 || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')) return Kind::kLetter;
  if (b >= '0' && b <= '9') return Kind::kDigit;
  if (b == ' ' || (b >= '\t' && b <= '\r')) return Kind::kSpace;
  return Kind::kSign;
}

// Length of 's, 't, 're, 've, 'm, 'll or 'd at the begin of `text`, else 0.
size_t contraction(std::string_view text) {
  for (std::string_view c : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.substr(0, c.size()) == c) return c.size();
  return 0;
}

// Calls f(word) for the words of `text` in order; together they are the text.
template <class F>
void for_each_word(std::string_view text, bool contractions, F&& f) {
  size_t i = 0;
  while (i < text.size()) {
    if (const size_t n = contractions ? contraction(text.substr(i)) : 0; n > 0) {
      f(text.substr(i, n));
      i += n;
      continue;
    }
    size_t end = i;
    const bool leading_space =
        text[i] == ' ' && i + 1 < text.size() && kind_of(text[i + 1]) != Kind::kSpace;
    if (leading_space) ++end;
    const Kind kind = kind_of(text[end]);
    while (end < text.size() && kind_of(text[end]) == kind) ++end;
    // The last blank of several belongs to the word behind it.
    const bool gives_blank = kind == Kind::kSpace && end < text.size() && text[end - 1] == ' ';
    if (gives_blank && end - i > 1) --end;
    f(text.substr(i, end - i));
    i = end;
  }
}

uint64_t key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

struct Word {
  std::vector<int32_t> ids;
  int64_t count = 0;
};

struct Candidate {
  int64_t count;
  uint64_t pair;
  bool operator<(const Candidate& o) const {  // the top of the queue: most frequent, smallest ids
    return count != o.count ? count < o.count : pair > o.pair;
  }
};

// Adjacent pairs of all words: how often each occurs and in which words.
class PairCounts {
 public:
  explicit PairCounts(std::vector<Word> words) : words_(std::move(words)) {
    for (size_t w = 0; w < words_.size(); ++w) {
      count(words_[w], +1);
      for_each_pair(words_[w], [&](uint64_t pair) { note_word(pair, w); });
    }
    for (const auto& [pair, n] : count_) queue_.push({n, pair});
  }

  // The most frequent pair, or nothing worth a new id.
  bool best(uint64_t& pair) {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      const int64_t now = count_[top.pair];
      if (now != top.count) {  // an old entry: put back what is true now
        if (now >= kFewest) queue_.push({now, top.pair});
        continue;
      }
      pair = top.pair;
      return now >= kFewest;
    }
    return false;
  }

  void merge(uint64_t pair, int32_t id) {
    const std::vector<size_t> where = std::move(where_[pair]);
    std::vector<uint64_t> made;
    for (size_t w : where) {
      count(words_[w], -1);
      replace(words_[w].ids, pair, id);
      count(words_[w], +1);
      for_each_pair(words_[w], [&](uint64_t p) {
        if (static_cast<int32_t>(p >> 32) != id && static_cast<int32_t>(p) != id) return;
        note_word(p, w);
        made.push_back(p);
      });
    }
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    for (uint64_t p : made)
      if (count_[p] >= kFewest) queue_.push({count_[p], p});
  }

 private:
  template <class F>
  static void for_each_pair(const Word& word, F&& f) {
    for (size_t i = 0; i + 1 < word.ids.size(); ++i) f(key(word.ids[i], word.ids[i + 1]));
  }

  void count(const Word& word, int sign) {
    for_each_pair(word, [&](uint64_t pair) { count_[pair] += sign * word.count; });
  }

  void note_word(uint64_t pair, size_t w) {
    std::vector<size_t>& at = where_[pair];
    if (at.empty() || at.back() != w) at.push_back(w);
  }

  static void replace(std::vector<int32_t>& ids, uint64_t pair, int32_t id) {
    size_t kept = 0;
    for (size_t i = 0; i < ids.size(); ++kept) {
      const bool hit = i + 1 < ids.size() && key(ids[i], ids[i + 1]) == pair;
      ids[kept] = hit ? id : ids[i];
      i += hit ? 2 : 1;
    }
    ids.resize(kept);
  }

  std::vector<Word> words_;
  std::unordered_map<uint64_t, int64_t> count_;
  std::unordered_map<uint64_t, std::vector<size_t>> where_;  // words that have or had the pair
  std::priority_queue<Candidate> queue_;
};

std::vector<Word> count_words(std::string_view text) {
  std::map<std::string_view, int64_t> counts;
  for_each_word(text, false, [&](std::string_view word) { ++counts[word]; });
  std::vector<Word> words;
  for (const auto& [word, count] : counts) {
    Word w{{}, count};
    for (char c : word) w.ids.push_back(static_cast<unsigned char>(c));
    words.push_back(std::move(w));
  }
  return words;
}

}  // namespace

Tokenizer::Tokenizer() {
  for (int b = 0; b < 256; ++b) bytes_.push_back(std::string(1, static_cast<char>(b)));
  std::iota(byte_id_.begin(), byte_id_.end(), 0);
}

Tokenizer::Tokenizer(TokenizerParts parts)
    : bytes_(std::move(parts.bytes)),
      byte_id_(parts.byte_id),
      end_of_text_(parts.end_of_text >= 0 ? parts.end_of_text : parts.byte_id[0]),
      contractions_(true) {
  for (const TokenizerParts::Merge& m : parts.merges)
    merge_.emplace(key(m.left, m.right), Merge{static_cast<int32_t>(merge_.size()), m.id});
}

int32_t Tokenizer::add_pair(int32_t left, int32_t right) {
  const auto id = static_cast<int32_t>(bytes_.size());
  bytes_.push_back(bytes_[static_cast<size_t>(left)] + bytes_[static_cast<size_t>(right)]);
  merge_[key(left, right)] = {id, id};
  return id;
}

Tokenizer Tokenizer::train(std::string_view text, int entries) {
  Tokenizer tokenizer;
  PairCounts pairs(count_words(text.substr(0, kTrainingBytes)));
  uint64_t pair = 0;
  while (tokenizer.size() < entries && pairs.best(pair)) {
    const auto left = static_cast<int32_t>(pair >> 32);
    const auto right = static_cast<int32_t>(pair & 0xffffffffu);
    pairs.merge(pair, tokenizer.add_pair(left, right));
  }
  return tokenizer;
}

// Merges pairs in the order of training, as training itself did.
std::vector<int32_t> Tokenizer::encode_word(std::string_view word) const {
  std::vector<int32_t> ids;
  for (char c : word) ids.push_back(byte_id_[static_cast<unsigned char>(c)]);
  while (ids.size() > 1) {
    Merge lowest{INT32_MAX, 0};
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto it = merge_.find(key(ids[i], ids[i + 1]));
      if (it == merge_.end() || it->second.rank >= lowest.rank) continue;
      lowest = it->second;
      at = i;
    }
    if (lowest.rank == INT32_MAX) break;
    ids[at] = lowest.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  return ids;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  constexpr size_t kLongestCached = 64;  // a megabyte of one letter must not fill the cache
  std::unordered_map<std::string_view, std::vector<int32_t>> cache;
  std::vector<int32_t> ids;
  for_each_word(text, contractions_, [&](std::string_view word) {
    while (!word.empty()) {  // long runs go in pieces: encode_word is quadratic
      const std::string_view piece = word.substr(0, kLongestCached);
      word.remove_prefix(piece.size());
      auto it = cache.find(piece);
      if (it == cache.end()) it = cache.emplace(piece, encode_word(piece)).first;
      ids.insert(ids.end(), it->second.begin(), it->second.end());
    }
  });
  return ids;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (int32_t id : ids) text += bytes_.at(static_cast<size_t>(id));
  return text;
}

}  // namespace tigon::convergence
