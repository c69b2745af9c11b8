// SPDX-License-Identifier: Apache-2.0
// --impl-from: a library's kernels become implementations of the contracts, named plugin:NAME.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "harness/run/cases/case.h"

namespace tigon::plugin {

class Proxy;

struct UsedPlugin {
  std::string path;  // absolute; of several, with commas
  std::string sandbox;
  std::vector<std::string> ops, implementations;  // without repetition
};

// Loads a library, or several with commas between them, each in a process of its own, and adds the
// kernels. Throws UsageError (one line) when there is no such file or it is no plug-in for this
// build; std::runtime_error when it ends its process or hangs. Once for a library.
UsedPlugin use_plugin(const std::string& paths);

// The same in a child of tigon when its arguments have --impl-from FILE.
void use_plugin_of_child(int argc, char** argv);

// The proxy of an implementation; null for ours.
std::shared_ptr<Proxy> proxy_of(const std::string& op, const std::string& pass,
                                const std::string& implementation);

inline constexpr const char* kPrefix = "plugin:";
inline bool is_plugin(const std::string& implementation) {
  return implementation.rfind(kPrefix, 0) == 0;
}

}  // namespace tigon::plugin
