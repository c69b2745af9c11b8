// SPDX-License-Identifier: Apache-2.0
// Option tables: what words give, and the one line for a wrong one.
#include "harness/cli/options/command_line.h"

#include <gtest/gtest.h>

namespace tigon::cli {
namespace {

struct Given {
  std::vector<std::string> ops, axes, rest;
  int jobs = 7;
  bool quick = false, full = false, graph = true;
  bool has_run = false;
};

// The exit code of `tigon sort WORDS`; -1: it has run.
int parse(const std::vector<std::string>& words, Given* given) {
  CommandLine line("a program", "./tigon");
  line.require_command();
  const Command command = line.program().add_command("sort", "sorts");
  command.option("rest", &given->rest, "words");
  command.list("--op", &given->ops, "ops");
  command.repeated("-a,--axis", &given->axes, "axes");
  command.option("--jobs", &given->jobs, "jobs").between(1, 1 << 24);
  const Option quick = command.flag("--quick", &given->quick, "quick");
  command.flag("--full", &given->full, "full").excludes(quick);
  command.flag("!--no-graph", &given->graph, "no graph");
  command.run([given] { given->has_run = true; });
  std::vector<std::string> all = {"sort"};
  all.insert(all.end(), words.begin(), words.end());
  return line.parse(all).value_or(-1);
}

std::string complaint(const std::vector<std::string>& words) {
  Given given;
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse(words, &given), 2);
  EXPECT_FALSE(given.has_run);
  return testing::internal::GetCapturedStderr();
}

TEST(CommandLine, words_go_where_their_options_say) {
  Given given;
  EXPECT_EQ(
      parse({"--op", "rope,swiglu", "x", "-a", "T=[1,2]", "-a", "V=3", "y", "--no-graph"}, &given),
      -1);
  EXPECT_TRUE(given.has_run);
  EXPECT_EQ(given.ops, (std::vector<std::string>{"rope", "swiglu"}));
  EXPECT_EQ(given.axes, (std::vector<std::string>{"T=[1,2]", "V=3"}));
  EXPECT_EQ(given.rest, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(given.jobs, 7);
  EXPECT_FALSE(given.quick);
  EXPECT_FALSE(given.graph);
}

TEST(CommandLine, a_wrong_word_is_one_line_with_the_nearest_right_one) {
  EXPECT_EQ(complaint({"--jbos", "3"}),
            "tigon: unknown option '--jbos', did you mean '--jobs'?; see ./tigon sort --help\n");
  const std::string range = complaint({"--jobs", "0"});
  EXPECT_NE(range.find("is out of range; see ./tigon sort --help\n"), std::string::npos) << range;
  EXPECT_NE(complaint({"--quick", "--full"}).find("--full"), std::string::npos);
}

}  // namespace
}  // namespace tigon::cli
