// SPDX-License-Identifier: Apache-2.0
// JSONL.
#include "convergence/examples.h"

#include <fmt/format.h>

#include <fstream>

#include "convergence/converge.h"
#include "harness/json/json.h"

namespace tigon::convergence {
namespace {

constexpr const char* kRight =
    R"(write one object a line, {"text": "..."} or {"instruction": "...", "output": "..."})";

std::string alpaca_prompt(const std::string& instruction, const std::string& input) {
  if (input.empty())
    return fmt::format(
        "Below is an instruction that describes a task. Write a response that appropriately "
        "completes the request.\n\n### Instruction:\n{}\n\n### Response:\n",
        instruction);
  return fmt::format(
      "Below is an instruction that describes a task, paired with an input that provides further "
      "context. Write a response that appropriately completes the request.\n\n"
      "### Instruction:\n{}\n\n### Input:\n{}\n\n### Response:\n",
      instruction, input);
}

// What is wrong with the line is thrown as text.
Example example_of(const std::string& line) {
  const Json object = Json::try_parse(line).value_or(nullptr);
  if (!object.is_object()) throw std::string("is no JSON object");
  const auto text = [&](const char* key) {
    const auto member = object.find(key);
    if (member == object.end()) throw fmt::format("has no \"{}\"", key);
    if (!member->is_string()) throw fmt::format("has a \"{}\" that is no text", key);
    return member->get<std::string>();
  };
  if (object.contains("text")) return {"", text("text")};
  if (!object.contains("instruction"))
    throw std::string("has neither \"text\" nor \"instruction\"");
  return {alpaca_prompt(text("instruction"), object.contains("input") ? text("input") : ""),
          text("output")};
}

}  // namespace

std::vector<Example> read_examples(const std::filesystem::path& path, size_t most_bytes) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConvergeError(2, fmt::format("cannot read {}", path.string()));
  std::vector<Example> examples;
  size_t bytes = 0;
  int number = 0;
  for (std::string line; bytes < most_bytes && std::getline(in, line); bytes += line.size() + 1) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      examples.push_back(example_of(line));
    } catch (const std::string& problem) {
      throw ConvergeError(2, fmt::format("{}:{} {}: {}", path.string(), number, problem, kRight));
    }
  }
  if (examples.empty())
    throw ConvergeError(2, fmt::format("{} holds no example: {}", path.string(), kRight));
  return examples;
}

}  // namespace tigon::convergence
