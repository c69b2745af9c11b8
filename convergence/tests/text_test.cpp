// SPDX-License-Identifier: Apache-2.0
// Tokenizer and data: round trips, repeatability, splits, windows and what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "convergence/converge.h"
#include "convergence/text_data.h"
#include "convergence/tokenizer.h"

namespace tigon::convergence {
namespace {

namespace fs = std::filesystem;

// Words from a small made-up language: enough different ones for any vocabulary.
std::string made_up_text(size_t words) {
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    uint64_t bits = random_bits(1, 1, i) % 3000;  // the word
    for (uint64_t n = 0; n < 3 + bits % 6; ++n) {
      text += static_cast<char>('a' + random_bits(2, bits, n) % 26);
    }
    text += i % 11 == 10 ? ".\n" : " ";
  }
  return text;
}

class TextFile {
 public:
  explicit TextFile(const std::string& content)
      : folder_(fs::temp_directory_path() / ("tigon_text_" + std::to_string(::getpid()))) {
    fs::create_directory(folder_);
    std::ofstream(folder_ / "text.txt", std::ios::binary) << content;
  }
  ~TextFile() { fs::remove_all(folder_); }
  fs::path folder() const { return folder_; }
  std::string path() const { return (folder_ / "text.txt").string(); }

 private:
  fs::path folder_;
};

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const ConvergeError& e) {
    EXPECT_EQ(e.exit_code, 2);
    return e.what();
  }
  return "";
}

TEST(Tokenizer, GivesBackEveryText) {
  const std::string text = made_up_text(5000);
  const Tokenizer tokenizer = Tokenizer::train(text, 700);
  EXPECT_EQ(tokenizer.size(), 700);
  std::string bytes;
  for (int i = 0; i < 5000; ++i)
    bytes += static_cast<char>(random_bits(3, 0, static_cast<uint64_t>(i)));
  for (const std::string& t : {text, bytes, std::string(300, ' '), std::string("  a  b\n\n c"),
                               std::string(), std::string(1000, 'x')})
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(t)), t);
}

TEST(Tokenizer, MergesTheMostFrequentPairFirst) {
  const Tokenizer tokenizer = Tokenizer::train("abab abab abab cd", 258);
  EXPECT_EQ(tokenizer.decode({256}), "ab");
  EXPECT_EQ(tokenizer.decode({257}), "abab");
  EXPECT_EQ(tokenizer.encode("abab"), (std::vector<int32_t>{257}));
}

TEST(Tokenizer, StopsWhenNoPairOccursTwice) {
  EXPECT_EQ(Tokenizer::train("abcdefg", 1000).size(), 256);
  EXPECT_EQ(Tokenizer::train("", 1000).size(), 256);
}

TEST(Tokenizer, IsTheSameEveryTime) {
  const std::string text = made_up_text(3000);
  EXPECT_EQ(Tokenizer::train(text, 900).encode(text), Tokenizer::train(text, 900).encode(text));
}

TEST(Corpus, DefaultTextGivesAFullVocabulary) {
  if (!fs::exists(kDefaultText)) GTEST_SKIP() << kDefaultText << " is not on this machine";
  const TokenData data(read_corpus(""), 4096, 128);
  EXPECT_EQ(data.entries(), 4096);
  EXPECT_GT(data.train_tokens(), 30000);
  EXPECT_GT(data.held_out_tokens(), 3000);
}

TEST(Corpus, FolderCountsAFileOnceAndSkipsBinaries) {
  const std::string text = made_up_text(2000);
  const TextFile file(text);
  fs::create_symlink("text.txt", file.folder() / "again");
  std::ofstream(file.folder() / "binary", std::ios::binary) << std::string("a\0b", 3);
  const Corpus folder = read_corpus(file.folder().string()), single = read_corpus(file.path());
  EXPECT_EQ(folder.files, 1);
  EXPECT_EQ(folder.train, single.train);
  EXPECT_EQ(folder.train.size() + folder.held_out.size(), text.size());
  EXPECT_NEAR(static_cast<double>(folder.held_out.size()), text.size() * 0.1, 2048.0);
}

TEST(Corpus, RefusesWhatIsMissingEmptyOrTooShort) {
  EXPECT_NE(refusal([] { read_corpus("/nonexistent/text"); }).find("/nonexistent/text"),
            std::string::npos);
  const TextFile empty("");
  EXPECT_NE(refusal([&] { read_corpus(empty.path()); }).find("empty"), std::string::npos);
  const TextFile brief(made_up_text(50));
  const Corpus corpus = read_corpus(brief.path());
  EXPECT_NE(refusal([&] { TokenData(corpus, 4096, 128); }).find("too little text"),
            std::string::npos);
}

TEST(Batch, TargetsAreTheNextTokensAndOrderIsComplete) {
  Corpus corpus;
  corpus.train = made_up_text(3000);
  corpus.held_out = made_up_text(500);
  const TokenData data(corpus, 256, 16);
  const Batch batch = data.train(9, 4, 3);
  ASSERT_EQ(batch.input.size(), 48u);
  for (size_t i = 0; i < 48; ++i)
    if (i % 16 != 15) {
      EXPECT_EQ(batch.target[i], batch.input[i + 1]);
    }
  const std::set<int32_t> places(batch.order.begin(), batch.order.end());
  EXPECT_EQ(places.size(), 48u);
  const std::set<int64_t> ids(batch.input.begin(), batch.input.end());
  size_t groups = 0;
  for (size_t g = 0; batch.first[g] < 48; ++g, ++groups)
    for (int32_t i = batch.first[g]; i < batch.first[g + 1]; ++i)
      EXPECT_EQ(batch.input[static_cast<size_t>(batch.order[static_cast<size_t>(i)])],
                batch.input[static_cast<size_t>(batch.order[static_cast<size_t>(batch.first[g])])]);
  EXPECT_EQ(groups, ids.size());
  EXPECT_EQ(batch.first.size(), 49u);
}

TEST(Batch, DependsOnSeedAndStepOnly) {
  Corpus corpus;
  corpus.train = corpus.held_out = made_up_text(3000);
  const TokenData data(corpus, 256, 16);
  EXPECT_EQ(data.train(1, 5, 2).input, data.train(1, 5, 2).input);
  EXPECT_NE(data.train(1, 5, 2).input, data.train(1, 6, 2).input);
  EXPECT_NE(data.train(1, 5, 2).input, data.train(2, 5, 2).input);
  EXPECT_NE(data.held_out(0, 2, 2).input, data.held_out(1, 2, 2).input);
}

}  // namespace
}  // namespace tigon::convergence
