// SPDX-License-Identifier: Apache-2.0
// What a run ran on: host, build, libraries, commit and environment variables, as the fields of the
// "run" record.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/record/record_writer.h"

namespace tigon {

// A checkout's state. `commit` is empty when unknown.
struct Commit {
  std::string commit;
  bool dirty = false;
};

// Of the checkout the program was built from, asked from git now; without git, what the build knew.
Commit current_commit();

// Name, operating system, kernel, processor, usable cores and memory of this machine.
Json host_block();

// Preset, compilers, flags, hash of the program.
Json build_block();

// Versions of the libraries: of the headers built with, and in a CUDA build of the cuDNN and
// cuBLASLt that are found now (null when there is none).
Json libraries_block();

// Variables that change what CUDA, its libraries or Tigon do; only those that are set.
Json environment_block();

// Fields of the "run" record. `device` is {"kind": "host"} or the block of a GPU.
Json run_fields(const std::vector<std::string>& command, uint64_t seed, const Json& device,
                const std::map<std::string, std::string>& tags);

}  // namespace tigon
