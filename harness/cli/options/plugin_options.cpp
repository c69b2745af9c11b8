// SPDX-License-Identifier: Apache-2.0
// --impl-from.
#include "harness/cli/options/plugin_options.h"

#include <fmt/format.h>

#include "harness/cli/text/terminal.h"
#include "harness/plugin/secret_cases.h"
#include "harness/plugin/use_plugin.h"

namespace tigon::cli {

Option add_plugin(Command command, PluginOptions* options) {
  return command.option(
      "--impl-from", &options->path,
      "library with ops of your own (harness/plugin/README.md), or several with commas; "
      "they are listed as plugin:NAME");
}

void use_plugin(const Command& command, PluginOptions* options, Selection* selection) {
  if (options->path.empty()) return;
  const plugin::UsedPlugin used = plugin::use_plugin(options->path);
  options->path = used.path;
  options->seed_is_chosen = command.given("--seed") || command.given("--case");
  if (selection->implementations.empty()) selection->implementations = used.implementations;
  fmt::print("{} of {}; its process has neither oracle nor results (sandbox: {})\n",
             fmt::join(used.implementations, ", "), fmt::join(used.ops, ", "), used.sandbox);
}

void keep_seeds_secret(const PluginOptions& options, const CheckRequest& request,
                       std::vector<Case>* cases) {
  if (options.seed_is_chosen) return;
  const uint64_t secret = plugin::draw_secret();
  const bool everything =
      request.axes.empty() && request.filter.empty() && request.shard_count == 1;
  if (everything) plugin::add_unlisted_shapes(secret, cases);
  plugin::give_secret_seeds(secret, cases);
}

}  // namespace tigon::cli
