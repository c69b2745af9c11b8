// Reading text, splitting it and cutting windows of tokens.
#include "convergence/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <system_error>

#include "convergence/converge.h"

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

Corpus read_checked(const fs::path& root) {
  Corpus corpus;
  corpus.source = root.string();
  std::string text;
  if (fs::is_regular_file(root)) {
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

TokenData::TokenData(const Corpus& corpus, int most_entries, int sequence) : sequence_(sequence) {
  const Tokenizer tokenizer = Tokenizer::train(corpus.train, most_entries);
  entries_ = tokenizer.size();
  train_ = tokenizer.encode(corpus.train);
  held_out_ = tokenizer.encode(corpus.held_out);
  const auto say = [&](const std::string& needed) {
    fail(
        fmt::format("too little text in {}: {} bytes in {} file(s) give {} token ids, {} training "
                    "and {} held-out tokens; {}",
                    corpus.source, corpus.train.size() + corpus.held_out.size(), corpus.files,
                    entries_, train_.size(), held_out_.size(), needed));
  };
  if (entries_ < std::min(kFewestEntries, most_entries))
    say(fmt::format("at least {} ids are needed", kFewestEntries));
  if (train_tokens() < kFewestWindows * sequence + 1)
    say(fmt::format("at least {} training tokens are needed", kFewestWindows * sequence + 1));
  if (held_out_tokens() < sequence + 1)
    say(fmt::format("at least {} held-out tokens are needed", sequence + 1));
}

// FNV-1a, a token at a time.
uint64_t TokenData::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::vector<int32_t>* part : {&train_, &held_out_}) {
    hash = (hash ^ part->size()) * 0x100000001b3u;
    for (int32_t id : *part) hash = (hash ^ static_cast<uint32_t>(id)) * 0x100000001b3u;
  }
  return hash;
}

Batch TokenData::windows(const std::vector<int32_t>& tokens,
                         const std::vector<int64_t>& starts) const {
  Batch batch;
  for (int64_t start : starts) {
    const auto at = tokens.begin() + start;
    batch.input.insert(batch.input.end(), at, at + sequence_);
    batch.target.insert(batch.target.end(), at + 1, at + 1 + sequence_);
  }
  const auto n = static_cast<int32_t>(batch.input.size());
  const auto id = [&](int32_t place) { return batch.input[static_cast<size_t>(place)]; };
  batch.order.resize(batch.input.size());
  std::iota(batch.order.begin(), batch.order.end(), 0);
  std::stable_sort(batch.order.begin(), batch.order.end(),
                   [&](int32_t a, int32_t b) { return id(a) < id(b); });
  for (int32_t i = 0; i < n; ++i)
    if (i == 0 ||
        id(batch.order[static_cast<size_t>(i)]) != id(batch.order[static_cast<size_t>(i - 1)]))
      batch.first.push_back(i);
  batch.first.resize(batch.input.size() + 1, n);
  return batch;
}

Batch TokenData::train(uint64_t seed, int64_t step, int batch) const {
  constexpr uint64_t kStream = 1;
  std::vector<int64_t> starts;
  for (int i = 0; i < batch; ++i) {
    const auto places = static_cast<uint64_t>(train_tokens() - sequence_);
    const uint64_t bits = random_bits(seed, kStream, static_cast<uint64_t>(step * batch + i));
    starts.push_back(static_cast<int64_t>(bits % places));
  }
  return windows(train_, starts);
}

Batch TokenData::held_out(int i, int count, int batch) const {
  std::vector<int64_t> starts;
  const int64_t last = held_out_tokens() - sequence_ - 1;
  const int64_t parts = std::max<int64_t>(1, int64_t{count} * batch - 1);
  for (int j = 0; j < batch; ++j) starts.push_back(last * (int64_t{i} * batch + j) / parts);
  return windows(held_out_, starts);
}

}  // namespace tigon::convergence
