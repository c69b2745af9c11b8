// SPDX-License-Identifier: Apache-2.0
// Examples, token files and tokenizers that users have: what becomes of them, and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "convergence/converge.h"
#include "convergence/text_data.h"
#include "convergence/token_file.h"
#include "convergence/tokenizer_file.h"
#include "harness/json/json.h"
#include "harness/tests/temporary_folder.h"

namespace tigon::convergence {
namespace {

namespace fs = std::filesystem;

class Data : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << bytes;
    return folder_.path() / name;
  }
  template <class F>
  static std::string refusal(F&& f) {
    try {
      f();
    } catch (const ConvergeError& error) {
      EXPECT_EQ(error.exit_code, 2);
      return error.what();
    }
    return "nothing was refused";
  }
  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  TemporaryFolder folder_;
};

// As GPT-2 has it: bytes as letters, "Ġ" is a blank; with some merges and an end of text.
Json small_vocabulary() {
  Json vocabulary = Json::object();
  int next = 0x100, id = 0;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    const int code = printable ? b : next++;
    std::string letter;
    if (code >= 0x80) letter += static_cast<char>(0xc0 | code >> 6);
    letter += static_cast<char>(code < 0x80 ? code : 0x80 | (code & 0x3f));
    vocabulary[letter] = id++;
  }
  for (const char* token : {"he", "ll", "hell", "hello", "\u0120w", "<|endoftext|>"})
    vocabulary[token] = id++;
  return vocabulary;
}
constexpr const char* kMerges = "#version: 0.2\nh e\nl l\nhe ll\nhell o\n\u0120 w\n";

std::string tokenizer_json(const Json& vocabulary) {
  const Json merges = {"h e", "l l", "he ll", "hell o", "\u0120 w"};
  return Json{{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}}.dump();
}

TEST_F(Data, TokenizerFilesOfBothKindsMergeInTheirOrder) {
  const fs::path json = write("tokenizer.json", tokenizer_json(small_vocabulary()));
  const Tokenizer one = load_tokenizer(json);
  EXPECT_EQ(one.size(), 262);
  EXPECT_EQ(one.end_of_text(), 261);
  const std::vector<int32_t> ids = one.encode("hello world");
  ASSERT_EQ(ids.size(), 6u);
  EXPECT_EQ(ids[0], 259);  // hello
  EXPECT_EQ(ids[1], 260);  // " w"
  fs::remove(json);
  const fs::path vocab = write("vocab.json", small_vocabulary().dump());
  write("merges.txt", kMerges);
  const Tokenizer two = load_tokenizer(folder_.path());
  for (const char* text : {"hello world", "it's  they'll 12 + \xc3\xa9\n\n x", "", "\x01\xff"}) {
    EXPECT_EQ(one.encode(text), two.encode(text));
    EXPECT_EQ(one.decode(one.encode(text)), text);
  }
}

TEST_F(Data, TokenizersThatCannotBeUsedAreRefused) {
  expect_in(refusal([&] { load_tokenizer(folder_.path()); }), "neither tokenizer.json");
  expect_in(refusal([&] { load_tokenizer(write("a.json", "{")); }), "is not JSON");
  expect_in(refusal([&] { load_tokenizer(write("a.json", "{}")); }), "no tokenizer.json");
  expect_in(refusal([&] { load_tokenizer(write("a.model", "x")); }), "SentencePiece");
  Json lacks = small_vocabulary();
  lacks.erase("hell");
  expect_in(refusal([&] { load_tokenizer(write("a.json", tokenizer_json(lacks))); }),
            "merge 2 ('he ll')");
  expect_in(refusal([&] {
              load_tokenizer(write("a.json", tokenizer_json({{"a", 0}})));
            }),
            "byte-level");
}

// Words that are split by another rule give other ids.
TEST_F(Data, ATokenizerWithAnotherRuleForWordsIsRefused) {
  const auto with = [&](const char* part, const Json& value) {
    Json json = Json::parse(tokenizer_json(small_vocabulary()));
    json[part] = value;
    return write("a.json", json.dump());
  };
  EXPECT_EQ(load_tokenizer(with("pre_tokenizer", {{"type", "ByteLevel"}})).size(), 262);
  EXPECT_EQ(load_tokenizer(with("normalizer", nullptr)).size(), 262);
  for (const auto& [part, value, text] : std::vector<std::tuple<const char*, Json, const char*>>{
           {"pre_tokenizer", {{"type", "Sequence"}}, "a pre-tokenizer of type Sequence"},
           {"pre_tokenizer", {{"type", "ByteLevel"}, {"use_regex", false}}, "does not split"},
           {"normalizer", {{"type", "NFC"}}, "a normalizer"}}) {
    const fs::path file = with(part, value);
    expect_in(refusal([&] { load_tokenizer(file); }), text);
  }
}

std::string examples(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format(R"({{"instruction":"add {} and 1","input":"","output":"hello {}"}})", i,
                        i + 1) +
            "\n";
  return text;
}

TEST_F(Data, PromptsAreNotLearntAndPaddedRowsHoldOneExample) {
  const fs::path file = write("a.jsonl", examples(40));
  const fs::path json = write("tokenizer.json", tokenizer_json(small_vocabulary()));
  const Corpus corpus = read_corpus(file.string());
  EXPECT_EQ(corpus.train_examples.size(), 36u);
  EXPECT_EQ(corpus.held_out_examples.size(), 4u);
  constexpr int kRow = 256;
  const TokenData data(corpus, 300, kRow, {json.string(), true});
  const Tokenizer tokenizer = load_tokenizer(json);
  const Batch batch = data.train(1, 0, 3);
  for (size_t row = 0; row < 3; ++row) {
    std::vector<int32_t> learnt;
    for (size_t i = row * kRow; i < (row + 1) * kRow; ++i)
      if (batch.target[i] != kIgnored) learnt.push_back(static_cast<int32_t>(batch.target[i]));
    ASSERT_FALSE(learnt.empty());
    EXPECT_EQ(learnt.back(), tokenizer.end_of_text());
    learnt.pop_back();
    EXPECT_EQ(tokenizer.decode(learnt).rfind("hello ", 0), 0u) << tokenizer.decode(learnt);
    EXPECT_EQ(batch.input[row * kRow], tokenizer.encode("Below").front());
  }
}

TEST_F(Data, PackedExamplesFollowEachOther) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("{{\"text\": \"line {} of many\"}}\n\n", i);
  const Corpus corpus = read_corpus(write("a.jsonl", text).string());
  const TokenData data(corpus, 256, 16);
  const Batch batch = data.train(1, 0, 4);
  EXPECT_EQ(std::count(batch.target.begin(), batch.target.end(), kIgnored), 0);
  EXPECT_NE(std::count(batch.input.begin(), batch.input.end(), 0), 0);  // ends of text
  EXPECT_EQ(data.train(1, 3, 4).input, TokenData(corpus, 256, 16).train(1, 3, 4).input);
}

TEST_F(Data, ABadExampleIsNamedByFileAndLine) {
  const auto of = [&](const std::string& line) {
    const fs::path file = write("bad.jsonl", examples(2) + line + "\n");
    const std::string text = refusal([&] { read_corpus(file.string()); });
    expect_in(text, "bad.jsonl:3 ");
    expect_in(text, "write one object a line");
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
  };
  expect_in(of("{"), "is no JSON object");
  expect_in(of("[1]"), "is no JSON object");
  expect_in(of(R"({"prompt": "x"})"), "neither \"text\" nor \"instruction\"");
  expect_in(of(R"({"instruction": "x"})"), "has no \"output\"");
  expect_in(of(R"({"text": 7})"), "that is no text");
  expect_in(refusal([&] { read_corpus(write("b.jsonl", "\n").string()); }), "no example");
}

std::string npy(const std::string& type, const std::string& shape, const std::string& numbers) {
  const std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n", type, shape);
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         numbers;
}

template <class T>
std::string numbers_as(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST_F(Data, TokenFilesOfEveryTypeAreRead) {
  const std::vector<int32_t> want = {1, 65535, 0};
  const std::string u2 = numbers_as<uint16_t>({1, 65535, 0});
  EXPECT_EQ(read_token_file(write("a.bin", u2), 65536), want);
  EXPECT_EQ(read_token_file(write("b.bin", numbers_as<uint32_t>({1, 65535, 0})), 65537), want);
  EXPECT_EQ(read_token_file(write("a.npy", npy("<u2", "(3,)", u2)), 65536), want);
  EXPECT_EQ(read_token_file(write("b.npy", npy("<i8", "(3,)", numbers_as<int64_t>({1, 65535, 0}))),
                            65536),
            want);
}

TEST_F(Data, TokenFilesThatDoNotFitAreRefused) {
  const auto of = [&](const std::string& name, const std::string& bytes) {
    return refusal([&] { read_token_file(write(name, bytes), 100); });
  };
  expect_in(of("a.bin", "abc"), "3 bytes are no whole number");
  expect_in(of("a.bin", numbers_as<uint16_t>({1, 100})), "token 1 has id 100");
  expect_in(of("a.npy", "abc"), "no NumPy array");
  expect_in(of("a.npy", npy("<f4", "(1,)", "abcd")), "another kind");
  expect_in(of("a.npy", npy("<u2", "(1, 2)", "abcd")), "another kind");
  expect_in(of("a.npy", npy("<i4", "(1,)", numbers_as<int32_t>({-1}))), "id -1");
}

TEST_F(Data, ATokenizerThatIsLargerThanTheModelSaysWhatFits) {
  const fs::path json = write("tokenizer.json", tokenizer_json(small_vocabulary()));
  const Corpus corpus = read_corpus(write("a.jsonl", examples(40)).string());
  expect_in(refusal([&] { TokenData(corpus, 100, 16, {json.string()}); }), "--vocabulary 262");
}

// A text long enough to be kept.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < kLeastKept; ++i) text += fmt::format("line {} of {}\n", i, i % 977);
  return text;
}

TEST_F(Data, TokensOfALongTextAreKeptAndFoundAgain) {
  const fs::path cache = folder_.path() / "a" / "cache";
  const Corpus corpus = read_corpus(write("long.txt", long_text()).string());
  const DataOptions kept{"", false, cache};
  const uint64_t want = TokenData(corpus, 1000, 16).fingerprint();
  EXPECT_EQ(TokenData(corpus, 1000, 16, kept).fingerprint(), want);
  const std::vector<fs::path> files{fs::directory_iterator(cache), fs::directory_iterator()};
  ASSERT_EQ(files.size(), 1u);
  const auto written = fs::last_write_time(files[0]);
  const TokenData again(corpus, 1000, 16, kept);
  EXPECT_EQ(again.fingerprint(), want);
  EXPECT_EQ(again.entries(), 1000);
  EXPECT_EQ(fs::last_write_time(files[0]), written) << "it was read";
  // Another text and another size of vocabulary are others.
  Corpus other = corpus;
  other.train[7] = 'X';
  EXPECT_NE(TokenData(other, 1000, 16, kept).fingerprint(), want);
  EXPECT_NE(TokenData(corpus, 1100, 16, kept).entries(), 1000);
}

TEST_F(Data, TokensThatWereCutOffOrChangedAreMadeAnew) {
  const fs::path cache = folder_.path() / "cache";
  const Corpus corpus = read_corpus(write("long.txt", long_text()).string());
  const DataOptions kept{"", false, cache};
  const uint64_t want = TokenData(corpus, 1000, 16, kept).fingerprint();
  const fs::path file = fs::directory_iterator(cache)->path();
  const auto size = fs::file_size(file);
  fs::resize_file(file, size / 2);
  EXPECT_EQ(TokenData(corpus, 1000, 16, kept).fingerprint(), want);
  EXPECT_EQ(fs::file_size(file), size);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-9, std::ios::end)
      << 'x';
  EXPECT_EQ(TokenData(corpus, 1000, 16, kept).fingerprint(), want);
}

TEST_F(Data, KeysKnowTheTokenizerAndWhereExamplesEnd) {
  const fs::path cache = folder_.path() / "cache";
  TokenKey one, other;
  one.add("ab"), one.add("c");
  other.add("a"), other.add("bc");
  EXPECT_NE(one.hex(), other.hex());
  auto vocabulary = small_vocabulary();
  const fs::path json = write("tokenizer.json", tokenizer_json(vocabulary));
  const Corpus corpus = read_corpus(write("long.txt", long_text()).string());
  const auto tokens = [&] { return TokenData(corpus, 300, 16, {json.string(), false, cache}); };
  const uint64_t before = tokens().fingerprint();
  std::swap(vocabulary["l"], vocabulary["i"]);
  write("tokenizer.json", tokenizer_json(vocabulary));
  EXPECT_NE(tokens().fingerprint(), before);
}

}  // namespace
}  // namespace tigon::convergence
