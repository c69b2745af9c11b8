// SPDX-License-Identifier: Apache-2.0
// The cases as GoogleTest tests, in a program of their own: filters, shards, XML, counts, Ctrl-C.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tigon {
namespace {

struct Printed {
  int exit_code;
  std::string out;
  std::string last_line() const {
    const std::string text = out.substr(0, out.size() - 1);
    return text.substr(text.rfind('\n') + 1);
  }
};

std::string program() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return (self.parent_path() / "faulty_check").string();
}

// faulty_check with "quick" or "patient" and more arguments; `shell` may set variables before it.
Printed run(const std::string& arguments, const std::string& shell = "") {
  FILE* pipe = popen((shell + " timeout 60 " + program() + " " + arguments + " 2>&1").c_str(), "r");
  Printed result;
  for (int ch; (ch = std::getc(pipe)) != EOF;) result.out.push_back(static_cast<char>(ch));
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(AsGtest, runs_every_case_and_counts_itself) {
  const Printed r = run("quick");
  EXPECT_EQ(r.last_line(), "4 passed, 8 failed, 4 skipped") << r.out;
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(count(r.out, "timeout faulty"), 4);
}

TEST(AsGtest, filters_by_suite_and_name) {
  const Printed r = run("quick '--gtest_filter=faulty.forward.right.*:*wrong*N=3*'");
  EXPECT_EQ(r.last_line(), "4 passed, 3 failed, 0 skipped") << r.out;
}

TEST(AsGtest, nothing_matched_or_all_skipped_is_not_a_success) {
  EXPECT_EQ(run("quick --gtest_filter=nothing").exit_code, 4);
  const Printed skipped = run("quick '--gtest_filter=*cannot*'");
  EXPECT_EQ(skipped.last_line(), "0 passed, 0 failed, 4 skipped") << skipped.out;
  EXPECT_EQ(skipped.exit_code, 4);
}

TEST(AsGtest, shards_split_the_cases) {
  const std::string filter = "quick '--gtest_filter=*right*'";
  const Printed first = run(filter, "GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=0");
  const Printed second = run(filter, "GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=1");
  EXPECT_EQ(first.last_line(), "2 passed, 0 failed, 0 skipped") << first.out;
  EXPECT_EQ(second.last_line(), "2 passed, 0 failed, 0 skipped") << second.out;
  EXPECT_NE(first.out, second.out);
}

TEST(AsGtest, writes_junit_xml) {
  const std::string file = testing::TempDir() + "check_gtest_test.xml";
  run("quick '--gtest_filter=*right*:*wrong*' --gtest_output=xml:" + file);
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(count(text.str(), "<testcase "), 8);
  EXPECT_EQ(count(text.str(), "<failure "), 4);
  EXPECT_NE(text.str().find("./tigon check --case"), std::string::npos);
  std::filesystem::remove(file);
}

TEST(AsGtest, ctrl_c_keeps_what_is_done_and_exits_with_130) {
  // The hanging case would wait for 20 s.
  const std::string script =
      program() + " patient '--gtest_filter=*right*:*hangs*' & sleep 1; kill -INT \\$!; wait \\$!";
  FILE* pipe = popen(("bash -c \"set -m; " + script + "\" 2>&1").c_str(), "r");
  std::string out;
  for (int ch; (ch = std::getc(pipe)) != EOF;) out.push_back(static_cast<char>(ch));
  const int status = pclose(pipe);
  EXPECT_EQ(WEXITSTATUS(status), 130) << out;
  EXPECT_NE(out.find("4 passed, 0 failed, 0 skipped"), std::string::npos) << out;
}

}  // namespace
}  // namespace tigon
