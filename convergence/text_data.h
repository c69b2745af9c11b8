// SPDX-License-Identifier: Apache-2.0
// Text to batches: reads files, splits off a held-out part, cuts token windows by seed and step.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convergence/examples.h"
#include "convergence/token_cache.h"
#include "convergence/tokenizer.h"

namespace tigon::convergence {

// Where the default text lies on Debian and Ubuntu (package base-files).
inline constexpr const char* kDefaultText = "/usr/share/common-licenses";

struct Corpus {
  std::string source;  // as named by the user
  int files = 0;
  std::string train, held_out;
  // In place of text: of a JSONL file, or the name of a file of token ids.
  std::vector<Example> train_examples, held_out_examples;
  std::string token_file;
};

// Reads a JSONL file (examples.h), finds a token file (token_file.h), reads a file of text, or
// every text file of a folder and its sub-folders in the order of their names; the same file under
// two names counts once, files with a zero byte are left out, and at most 64 MiB are read. Every
// tenth piece of 2 KiB, or every tenth example, is held out. Empty `path`: kDefaultText. Throws
// ConvergeError (exit code 2) when there is no such file or no text in it.
Corpus read_corpus(const std::string& path);

// One step's input. The tokens of equal id are listed together, so that the gradient of the
// embedding is summed without atomics, in an order that is always the same.
struct Batch {
  std::vector<int64_t> input, target;  // [N]; target is the next token
  std::vector<int32_t> order;          // [N] places of `input`, sorted by id, then by place
  std::vector<int32_t> first;  // [N + 1] in `order`: begin of each distinct id; the rest is N

  // Fills `order` and `first` from `input`.
  void list_equal_tokens();
};

// A target that is not learnt, as the losses take it.
inline constexpr int64_t kIgnored = -100;

struct DataOptions {
  std::string tokenizer;  // as load_tokenizer() takes it; empty: one is trained on the text
  // Each example has a row of its own, cut off or filled up to the sequence with what is not
  // learnt; else examples are packed: one behind the other, windows begin anywhere.
  bool padded = false;
  // Where the ids of a text of at least kLeastKept bytes are kept for the next time; empty:
  // nowhere.
  std::filesystem::path cache = {};
};
inline constexpr size_t kLeastKept = size_t{1} << 20;  // less takes a tenth of a second

// Token ids of both parts and the windows cut from them. Behind each example is the tokenizer's end
// of text; prompts and what fills up are not learnt.
class TokenData {
 public:
  // Throws ConvergeError (exit code 2) when the text gives too few tokens for windows of
  // `sequence`, or ids that are not below `most_entries`, or a tokenizer trained on it fewer than
  // kFewestEntries ids.
  TokenData(const Corpus& corpus, int most_entries, int sequence, const DataOptions& options = {});

  // `batch` windows at places that depend on nothing but seed and step.
  Batch train(uint64_t seed, int64_t step, int batch) const;
  // Batch i of `count`: windows spread evenly over the held-out part.
  Batch held_out(int i, int count, int batch) const;

  int entries() const { return text_.entries; }  // ids are smaller
  int64_t train_tokens() const { return text_.train.size(); }
  int64_t held_out_tokens() const { return text_.held_out.size(); }
  uint64_t fingerprint() const { return convergence::fingerprint(text_); }

  static constexpr int kFewestEntries = 4096;

 private:
  void encode(const Tokenizer& tokenizer, const std::vector<Example>& examples, Tokens& to) const;
  void read_ids(const Corpus& corpus, int most_entries);
  void tokenize(const Corpus& corpus, int most_entries, const std::string& tokenizer);
  void tokenize_or_find(const Corpus& corpus, int most_entries, const DataOptions& options);
  std::string key(const Corpus& corpus, int most_entries, const std::string& tokenizer) const;
  int64_t row() const { return sequence_ + 1; }
  Batch windows(const Tokens& tokens, const std::vector<int64_t>& starts) const;

  int sequence_;
  bool padded_;
  TokenizedText text_;
};

// Made up: `tokens` ids below `vocabulary`, each with one to predict.
Batch random_batch(int64_t tokens, int vocabulary);

// Random bits that depend on nothing but the arguments (splitmix64, Steele et al. 2014).
uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index);

}  // namespace tigon::convergence
