// SPDX-License-Identifier: Apache-2.0
// GoogleTest's flags in tigon check.
#include "harness/cli/commands/check_gtest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/cli/text/terminal.h"
#include "harness/run/cases/known_names.h"

namespace tigon::cli {

void init_googletest(const std::vector<std::string>& flags) {
  const std::vector<std::string> known = {
      "--gtest_filter",  "--gtest_output",      "--gtest_list_tests", "--gtest_fail_fast",
      "--gtest_shuffle", "--gtest_random_seed", "--gtest_color"};
  std::vector<std::string> words = {"./tigon check"};
  for (const std::string& flag : flags) {
    require_known("flag", {flag.substr(0, flag.find('='))}, known);
    words.push_back(flag);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  auto count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  testing::InitGoogleTest(&count, arguments.data());
  if (count > 1) throw UsageError(fmt::format("{}: not a value of that flag", arguments[1]));
}

bool gtest_chooses() {
  return testing::GTEST_FLAG(list_tests) || testing::GTEST_FLAG(filter) != "*";
}

void say_what_gtest_leaves_out(const CheckOptions& options, size_t suites) {
  const bool all = default_executor() != "fast" || !options.executor.empty();
  if (gtest_chooses() && !all)
    print_error(
        "--gtest_filter: of the fast executor's cases; --executor checked and sm_80 have others");
  if (!testing::GTEST_FLAG(output).empty() && suites > 1)
    print_error("--gtest_output: has the fast executor's cases; --junit FILE has all");
}

void run_through_googletest(const CheckRequest& request, const CheckSink& sink) {
  for (const char* variable : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(variable);
  std::string name = "./tigon check";
  char* arguments[] = {name.data(), nullptr};
  int count = 1;
  run_checks_as_gtest(request, sink, &count, arguments);
}

}  // namespace tigon::cli
