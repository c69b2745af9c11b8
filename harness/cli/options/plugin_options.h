// SPDX-License-Identifier: Apache-2.0
// --impl-from: ops of a plug-in library (harness/plugin) take the place of ours.
#pragma once
#include <string>

#include "harness/cli/options/selection.h"

namespace tigon::cli {

struct PluginOptions {
  std::string path;             // absolute once it is used; empty: no library
  bool seed_is_chosen = false;  // by --seed or --case: no secret
};

Option add_plugin(Command command, PluginOptions* options);

// Loads the library, if there is one, and selects its kernels unless the person named
// implementations. Throws UsageError, one line.
void use_plugin(const Command& command, PluginOptions* options, Selection* selection);

// Gives every case a seed of its own that nobody knew before, and adds shapes that no contract
// lists. The seeds stand in the case ids, so each case still reproduces.
void keep_seeds_secret(const PluginOptions& options, const CheckRequest& request,
                       std::vector<Case>* cases);

}  // namespace tigon::cli
