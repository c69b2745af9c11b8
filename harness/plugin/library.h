// SPDX-License-Identifier: Apache-2.0
// A plug-in library in the host program: loaded, asked for every op that the judge knows, and every
// answer checked before it is used.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/json/json.h"
#include "kernels/call/tigon.h"

namespace tigon::plugin {

// What is wrong with a library: one line.
struct BadLibrary : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Library {
 public:
  // `wanted`: {"rms_norm.forward": [TIGON_F32, ...], ...}. Throws BadLibrary.
  Library(const std::string& path, const Json& wanted);

  const tigon_op& op(size_t i) const { return *ops_.at(i); }
  // What it has, for the judge: [{"name", "dtype", "implementation", "device"}, ...].
  Json description() const;

 private:
  std::vector<const tigon_op*> ops_;
};

}  // namespace tigon::plugin
