// SPDX-License-Identifier: Apache-2.0
// Examples of a JSONL file: one JSON object a line.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tigon::convergence {

// What is asked, which is not learnt, and the answer.
struct Example {
  std::string prompt, response;
};

// {"text"}, which is all response, or {"instruction", "output"} and perhaps "input", whose prompt
// has the layout of Alpaca (Taori et al. 2023); at most `most_bytes` of the file. Throws
// ConvergeError(2) that names file, line and what would be right.
std::vector<Example> read_examples(const std::filesystem::path& path, size_t most_bytes);

}  // namespace tigon::convergence
