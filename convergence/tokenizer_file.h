// SPDX-License-Identifier: Apache-2.0
// Byte-pair tokenizers that users have: tokenizer.json of Hugging Face, or vocab.json and
// merges.txt as GPT-2 has them.
#pragma once
#include <filesystem>
#include <vector>

#include "convergence/tokenizer.h"

namespace tigon::convergence {

// `path`: a tokenizer.json, a vocab.json with merges.txt beside it, or a folder with either. Only
// byte-level vocabularies whose words are split by GPT-2's rule, in which a byte outside of ASCII
// counts as a letter, so ids may differ from the library's while the text that they stand for is
// the same. Another rule (Llama 3, Qwen) or a normalizer is refused. Throws ConvergeError(2) that
// says what would be right.
Tokenizer load_tokenizer(const std::filesystem::path& path);

// The files that load_tokenizer() may read for that path; none for an empty one.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& path);

}  // namespace tigon::convergence
