// SPDX-License-Identifier: Apache-2.0
// Files of token ids that were made elsewhere.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace tigon::convergence {

// True for the names that are read so: .bin and .npy.
bool is_token_file(const std::filesystem::path& path);

// .bin: little-endian numbers without a header, uint16 when the model's vocabulary has at most
// 65536 entries, as nanoGPT writes them, else uint32. .npy: one-dimensional, its header says the
// type: uint16, uint32, int32 or int64. Throws ConvergeError(2) that says what would be right, also
// for an id that is not below `vocabulary`.
std::vector<int32_t> read_token_file(const std::filesystem::path& path, int vocabulary);

}  // namespace tigon::convergence
