// SPDX-License-Identifier: Apache-2.0
// Reading text, splitting it and cutting windows of tokens.
#include "convergence/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <system_error>

#include "convergence/converge.h"
#include "convergence/token_file.h"
#include "convergence/tokenizer_file.h"

namespace tigon::convergence {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{64} << 20;
constexpr size_t kPieceBytes = 2048;
constexpr size_t kHeldOutEvery = 10;
constexpr int64_t kFewestWindows = 8;  // of the training part; fewer would be learnt by heart

[[noreturn]] void fail(const std::string& what) { throw ConvergeError(2, what); }

std::string read_file(const fs::path& path, size_t most) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(fmt::format("cannot read {}: give --data a text file or folder", path.string()));
  std::string text(std::min<size_t>(most, fs::file_size(path)), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  const auto options = fs::directory_options::skip_permission_denied;
  for (const auto& entry : fs::recursive_directory_iterator(folder, options)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_text(const std::string& bytes) {
  return !bytes.empty() && bytes.find('\0') == std::string::npos;
}

void split(const std::string& text, Corpus& corpus) {
  for (size_t piece = 0; piece * kPieceBytes < text.size(); ++piece) {
    std::string& part = (piece + 1) % kHeldOutEvery == 0 ? corpus.held_out : corpus.train;
    part.append(text, piece * kPieceBytes, kPieceBytes);
  }
}

void read_jsonl(const fs::path& path, Corpus& corpus) {
  std::vector<Example> examples = read_examples(path, kMostBytes);
  for (size_t i = 0; i < examples.size(); ++i)
    ((i + 1) % kHeldOutEvery == 0 ? corpus.held_out_examples : corpus.train_examples)
        .push_back(std::move(examples[i]));
}

Corpus read_checked(const fs::path& root) {
  Corpus corpus;
  corpus.source = root.string();
  std::string text;
  if (fs::is_regular_file(root) && root.extension() == ".jsonl") {
    read_jsonl(root, corpus);
    corpus.files = 1;
  } else if (fs::is_regular_file(root) && is_token_file(root)) {
    corpus.token_file = root.string();
    corpus.files = 1;
  } else if (fs::is_regular_file(root)) {
    text = read_file(root, kMostBytes);
    if (!is_text(text)) fail(fmt::format("{} is empty or not text", root.string()));
    corpus.files = 1;
  } else if (fs::is_directory(root)) {
    std::set<fs::path> seen;
    for (const fs::path& path : files_of(root)) {
      if (text.size() >= kMostBytes) break;
      if (!seen.insert(fs::canonical(path)).second) continue;
      const std::string bytes = read_file(path, kMostBytes - text.size());
      if (!is_text(bytes)) continue;
      text += bytes;
      ++corpus.files;
    }
    if (text.empty()) fail(fmt::format("no text file in {}", root.string()));
  } else {
    fail(fmt::format("no such text: {}; give --data an existing file or folder", root.string()));
  }
  split(text, corpus);
  return corpus;
}

size_t bytes_of(const Corpus& corpus) {
  size_t bytes = corpus.train.size() + corpus.held_out.size();
  for (const auto* examples : {&corpus.train_examples, &corpus.held_out_examples})
    for (const Example& e : *examples) bytes += e.prompt.size() + e.response.size();
  return bytes;
}

}  // namespace

Corpus read_corpus(const std::string& path) {
  try {
    return read_checked(path.empty() ? kDefaultText : path);
  } catch (const fs::filesystem_error& e) {
    fail(fmt::format("cannot read {}: {}", e.path1().string(), e.code().message()));
  }
}

uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
  const auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  return mix(mix(mix(seed + kStep) + (stream + 1) * kStep) + (index + 1) * kStep);
}

void TokenData::encode(const Tokenizer& tokenizer, const std::vector<Example>& examples,
                       Tokens& to) const {
  for (const Example& e : examples) {
    const size_t begin = to.ids.size();
    to.add(tokenizer.encode(e.prompt), true);
    to.add(tokenizer.encode(e.response), false);
    to.add({tokenizer.end_of_text()}, false);
    if (!padded_) continue;
    const size_t end = begin + static_cast<size_t>(row());
    to.ids.resize(end, tokenizer.end_of_text());
    to.ignored.resize(end, true);
  }
}

void TokenData::read_ids(const Corpus& corpus, int most_entries) {
  constexpr size_t kPiece = 2048;
  const std::vector<int32_t> ids = read_token_file(corpus.token_file, most_entries);
  for (size_t piece = 0; piece * kPiece < ids.size(); ++piece) {
    Tokens& part = (piece + 1) % kHeldOutEvery == 0 ? text_.held_out : text_.train;
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(piece * kPiece);
    part.ids.insert(part.ids.end(), begin,
                    begin + std::min<std::ptrdiff_t>(kPiece, ids.end() - begin));
  }
  for (int32_t id : ids) text_.entries = std::max(text_.entries, id + 1);
}

void TokenData::tokenize(const Corpus& corpus, int most_entries, const std::string& file) {
  const auto trained = [&] {
    std::string text = corpus.train;
    for (const Example& e : corpus.train_examples) text += e.prompt + e.response;
    return Tokenizer::train(text, most_entries);
  };
  const Tokenizer tokenizer = file.empty() ? trained() : load_tokenizer(file);
  text_.entries = tokenizer.size();
  if (!file.empty() && entries() > most_entries)
    fail(fmt::format("{} has {} ids, the model {} entries: give --vocabulary {}", file, entries(),
                     most_entries, entries()));
  text_.train.ids = tokenizer.encode(corpus.train);
  text_.held_out.ids = tokenizer.encode(corpus.held_out);
  encode(tokenizer, corpus.train_examples, text_.train);
  encode(tokenizer, corpus.held_out_examples, text_.held_out);
}

// All that ids depend on beside this program, whose number below is another when it gives others.
std::string TokenData::key(const Corpus& corpus, int most_entries, const std::string& file) const {
  constexpr uint64_t kProgram = 1;
  TokenKey key;
  for (const uint64_t number : {kProgram, static_cast<uint64_t>(most_entries),
                                static_cast<uint64_t>(padded_ ? sequence_ : 0)})
    key.add(number);
  key.add(corpus.train);
  key.add(corpus.held_out);
  for (const auto* examples : {&corpus.train_examples, &corpus.held_out_examples}) {
    key.add(examples->size());
    for (const Example& e : *examples) key.add(e.prompt), key.add(e.response);
  }
  for (const fs::path& part : tokenizer_files(file))
    key.add(read_file(part, std::numeric_limits<size_t>::max()));
  return key.hex();
}

void TokenData::tokenize_or_find(const Corpus& corpus, int most_entries,
                                 const DataOptions& options) {
  const std::string name = key(corpus, most_entries, options.tokenizer);
  if (auto found = find_tokens(options.cache, name)) {
    text_ = std::move(*found);
    return;
  }
  tokenize(corpus, most_entries, options.tokenizer);
  keep_tokens(options.cache, name, text_);
}

TokenData::TokenData(const Corpus& corpus, int most_entries, int sequence,
                     const DataOptions& options)
    : sequence_(sequence), padded_(options.padded) {
  if (padded_ && corpus.train_examples.empty())
    fail(fmt::format("{} has no examples to pad: a JSONL file has", corpus.source));
  if (!corpus.token_file.empty())
    read_ids(corpus, most_entries);
  else if (options.cache.empty() || bytes_of(corpus) < kLeastKept)
    tokenize(corpus, most_entries, options.tokenizer);
  else
    tokenize_or_find(corpus, most_entries, options);
  const auto say = [&](const std::string& needed) {
    fail(
        fmt::format("too little text in {}: {} bytes in {} file(s) give {} token ids, {} training "
                    "and {} held-out tokens; {}",
                    corpus.source, corpus.train.size() + corpus.held_out.size(), corpus.files,
                    entries(), train_tokens(), held_out_tokens(), needed));
  };
  const bool trained = corpus.token_file.empty() && options.tokenizer.empty();
  if (trained && entries() < std::min(kFewestEntries, most_entries))
    say(fmt::format("at least {} ids are needed", kFewestEntries));
  if (train_tokens() < kFewestWindows * sequence + 1)
    say(fmt::format("at least {} training tokens are needed", kFewestWindows * sequence + 1));
  if (held_out_tokens() < sequence + 1)
    say(fmt::format("at least {} held-out tokens are needed", sequence + 1));
}

void Batch::list_equal_tokens() {
  const auto n = static_cast<int32_t>(input.size());
  const auto id = [&](int32_t place) { return input[static_cast<size_t>(place)]; };
  order.resize(input.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return id(a) < id(b); });
  first.clear();
  for (int32_t i = 0; i < n; ++i)
    if (i == 0 || id(order[static_cast<size_t>(i)]) != id(order[static_cast<size_t>(i - 1)]))
      first.push_back(i);
  first.resize(input.size() + 1, n);
}

Batch random_batch(int64_t tokens, int vocabulary) {
  Batch batch;
  for (int64_t i = 0; i < tokens; ++i) {
    const auto id = [&](uint64_t stream) {
      return static_cast<int64_t>(random_bits(1, stream, static_cast<uint64_t>(i)) %
                                  static_cast<uint64_t>(vocabulary));
    };
    batch.input.push_back(id(0));
    batch.target.push_back(id(1));
  }
  batch.list_equal_tokens();
  return batch;
}

Batch TokenData::windows(const Tokens& tokens, const std::vector<int64_t>& starts) const {
  Batch batch;
  for (int64_t start : starts)
    for (int64_t at = start; at < start + sequence_; ++at) {
      const auto next = static_cast<size_t>(at + 1);
      const bool ignored = !tokens.ignored.empty() && tokens.ignored[next];
      batch.input.push_back(tokens.ids[static_cast<size_t>(at)]);
      batch.target.push_back(ignored ? kIgnored : tokens.ids[next]);
    }
  batch.list_equal_tokens();
  return batch;
}

Batch TokenData::train(uint64_t seed, int64_t step, int batch) const {
  constexpr uint64_t kStream = 1;
  const int64_t stride = padded_ ? row() : 1;
  const int64_t places = padded_ ? train_tokens() / row() : train_tokens() - sequence_;
  std::vector<int64_t> starts;
  for (int i = 0; i < batch; ++i) {
    const uint64_t bits = random_bits(seed, kStream, static_cast<uint64_t>(step * batch + i));
    starts.push_back(static_cast<int64_t>(bits % static_cast<uint64_t>(places)) * stride);
  }
  return windows(text_.train, starts);
}

Batch TokenData::held_out(int i, int count, int batch) const {
  const int64_t stride = padded_ ? row() : 1;
  const int64_t last = padded_ ? held_out_tokens() / row() - 1 : held_out_tokens() - sequence_ - 1;
  const int64_t parts = std::max<int64_t>(1, int64_t{count} * batch - 1);
  std::vector<int64_t> starts;
  for (int j = 0; j < batch; ++j)
    starts.push_back(last * (int64_t{i} * batch + j) / parts * stride);
  return windows(text_.held_out, starts);
}

}  // namespace tigon::convergence
