// SPDX-License-Identifier: Apache-2.0
// Vocabularies and merges from JSON and text.
#include "convergence/tokenizer_file.h"

#include <fmt/format.h>

#include <fstream>
#include <map>

#include "convergence/converge.h"
#include "harness/json/json.h"

namespace tigon::convergence {
namespace {

namespace fs = std::filesystem;
[[noreturn]] void refuse(const fs::path& path, const std::string& problem) {
  throw ConvergeError(2, fmt::format("{}: {}", path.string(), problem));
}

Json read_json(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, "cannot be read; give a tokenizer.json, or a vocab.json and merges.txt");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto json = Json::try_parse(text);
  if (!json) refuse(path, "is not JSON");
  return std::move(*json);
}

// GPT-2 writes each byte as one printable letter: those that are printable stand for themselves,
// the others follow from U+0100 on. Here: UTF-8 of the letter -> byte.
std::map<std::string, char> byte_of_letter() {
  std::map<std::string, char> letters;
  int next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    const int code = printable ? b : next++;
    std::string utf8;
    if (code < 0x80) {
      utf8 = static_cast<char>(code);
    } else {
      utf8 = static_cast<char>(0xc0 | code >> 6);
      utf8 += static_cast<char>(0x80 | (code & 0x3f));
    }
    letters[utf8] = static_cast<char>(b);
  }
  return letters;
}

// The bytes that a token of the vocabulary stands for; nothing when it is not written byte by byte.
std::optional<std::string> bytes_of_token(const std::string& token) {
  static const std::map<std::string, char> letters = byte_of_letter();
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    const size_t length = (token[i] & 0x80) == 0 ? 1 : 2;
    const auto found = letters.find(token.substr(i, length));
    if (found == letters.end()) return std::nullopt;
    bytes += found->second;
    i += length;
  }
  return bytes;
}

struct Merges {
  std::vector<std::pair<std::string, std::string>> pairs;
};

Merges merges_of_text(const fs::path& path) {
  std::ifstream in(path);
  if (!in) refuse(path, "cannot be read; it belongs beside vocab.json");
  Merges merges;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.rfind("#version", 0) == 0) continue;
    const size_t blank = line.find(' ');
    if (blank == std::string::npos || line.find(' ', blank + 1) != std::string::npos)
      refuse(path, fmt::format("line {}: write two tokens with one blank between them", number));
    merges.pairs.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return merges;
}

// "a b" or, in newer files, ["a", "b"].
Merges merges_of_json(const fs::path& path, const Json& list) {
  Merges merges;
  for (const Json& entry : list) {
    if (entry.is_array() && entry.size() == 2) {
      merges.pairs.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
      continue;
    }
    const std::string text = entry.is_string() ? entry.get<std::string>() : "";
    const size_t blank = text.find(' ');
    if (blank == std::string::npos)
      refuse(path, fmt::format("merge {} is no pair of tokens", merges.pairs.size()));
    merges.pairs.emplace_back(text.substr(0, blank), text.substr(blank + 1));
  }
  return merges;
}

Tokenizer build(const fs::path& path, const std::map<std::string, int32_t>& vocabulary,
                const Merges& merges) {
  TokenizerParts parts;
  int32_t size = 0;
  for (const auto& [token, id] : vocabulary) {
    constexpr int32_t kMost = 1 << 22;
    if (id < 0 || id > kMost) refuse(path, fmt::format("token '{}' has id {}", token, id));
    size = std::max(size, id + 1);
  }
  parts.bytes.resize(static_cast<size_t>(size));
  for (const auto& [token, id] : vocabulary)
    parts.bytes[static_cast<size_t>(id)] = bytes_of_token(token).value_or(token);
  for (const char* end : {"<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>", "<eos>"})
    if (const auto found = vocabulary.find(end); found != vocabulary.end()) {
      parts.end_of_text = found->second;
      break;
    }
  for (const auto& [letter, byte] : byte_of_letter()) {
    const auto found = vocabulary.find(letter);
    if (found == vocabulary.end())
      refuse(path, fmt::format("no entry for byte {}: only byte-level vocabularies can be used, as "
                               "GPT-2, Llama 3 and Qwen have them",
                               static_cast<unsigned char>(byte)));
    parts.byte_id[static_cast<unsigned char>(byte)] = found->second;
  }
  for (const auto& [left, right] : merges.pairs) {
    const auto a = vocabulary.find(left), b = vocabulary.find(right),
               both = vocabulary.find(left + right);
    if (a == vocabulary.end() || b == vocabulary.end() || both == vocabulary.end())
      refuse(path, fmt::format("merge {} ('{} {}') makes a token that the vocabulary lacks",
                               parts.merges.size(), left, right));
    parts.merges.push_back({a->second, b->second, both->second});
  }
  return Tokenizer(std::move(parts));
}

// What would split words in another way than GPT-2's rule, or change the text before; else nothing.
std::string other_rule(const Json& json) {
  const auto set = [&](const char* part) {
    return json.contains(part) && json[part].kind() != Json::Kind::kNull;
  };
  if (set("normalizer")) return "a normalizer";
  if (json.at("model").value("ignore_merges", false)) return "merges that are not always applied";
  if (!set("pre_tokenizer")) return {};
  const Json& rule = json["pre_tokenizer"];
  const std::string type = rule.value("type", "");
  if (type != "ByteLevel") return fmt::format("a pre-tokenizer of type {}", type);
  return rule.value("use_regex", true) ? "" : "a pre-tokenizer that does not split";
}

Tokenizer load_json(const fs::path& path) {
  const Json json = read_json(path);
  try {
    const Json& model = json.at("model");
    if (model.value("type", "BPE") != "BPE")
      refuse(path, fmt::format("a tokenizer of type {}; byte-pair encoding (BPE) can be used",
                               model["type"].get<std::string>()));
    if (const std::string rule = other_rule(json); !rule.empty())
      refuse(path, fmt::format("has {}, and here words are split by GPT-2's rule: encode the text "
                               "with Hugging Face's tokenizers and give --data the ids (.npy)",
                               rule));
    auto vocabulary = model.at("vocab").get<std::map<std::string, int32_t>>();
    if (json.contains("added_tokens"))
      for (const Json& token : json["added_tokens"])
        vocabulary[token.at("content").get<std::string>()] = token.at("id").get<int32_t>();
    return build(path, vocabulary, merges_of_json(path, model.at("merges")));
  } catch (const Json::Error& error) {
    refuse(path, fmt::format("no tokenizer.json of Hugging Face ({})", error.what()));
  }
}

Tokenizer load_pair(const fs::path& path) {
  try {
    return build(path, read_json(path).get<std::map<std::string, int32_t>>(),
                 merges_of_text(path.parent_path() / "merges.txt"));
  } catch (const Json::Error&) {
    refuse(path, "no vocabulary: an object of tokens and their ids would be right");
  }
}

}  // namespace

Tokenizer load_tokenizer(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    for (const char* name : {"tokenizer.json", "vocab.json"})
      if (fs::exists(path / name, ignored)) return load_tokenizer(path / name);
    refuse(path, "holds neither tokenizer.json nor vocab.json");
  }
  if (path.extension() == ".model")
    refuse(path,
           "this build reads no SentencePiece models; give the tokenizer.json of the same "
           "model, if its vocabulary is byte-level");
  return path.filename() == "vocab.json" ? load_pair(path) : load_json(path);
}

std::vector<fs::path> tokenizer_files(const fs::path& path) {
  std::error_code ignored;
  if (path.empty()) return {};
  if (!fs::is_directory(path, ignored) && path.filename() != "vocab.json") return {path};
  const fs::path folder = fs::is_directory(path, ignored) ? path : path.parent_path();
  std::vector<fs::path> files;
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"})
    if (fs::is_regular_file(folder / name, ignored)) files.push_back(folder / name);
  return files;
}

}  // namespace tigon::convergence
