// SPDX-License-Identifier: Apache-2.0
// What a run builds during its first stages.
#include "harness/cli/later_build.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "harness/tests/temporary_folder.h"

namespace tigon::cli {
namespace {

TEST(LaterBuild, goes_on_until_it_is_waited_for) {
  const TemporaryFolder folder;
  const std::string log = folder.path() / "log", built = folder.path() / "built";
  LaterBuild build("echo '[1/2] a'; sleep 0.5; echo '[2/2] b'; touch " + built, log);
  testing::internal::CaptureStderr();
  build.wait();
  EXPECT_TRUE(std::filesystem::exists(built));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tigon: building: 0 of 1, what this stage starts\n");
  build.wait();  // there is nothing left to wait for
}

TEST(LaterBuild, says_where_the_errors_of_one_that_failed_are) {
  const TemporaryFolder folder;
  const std::string log = folder.path() / "log";
  std::ofstream(log) << "of another build\n";
  LaterBuild build("echo '[1/2] a'; echo 'a.cu: error' >&2; exit 3", log);
  try {
    build.wait();
    FAIL() << "it failed";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), "building failed, see " + log);
  }
  std::ifstream written(log);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), "[1/2] a\na.cu: error\n");
}

TEST(LaterBuild, without_a_command_there_is_none) {
  const TemporaryFolder folder;
  LaterBuild build("", folder.path() / "log");
  build.wait();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "log"));
}

TEST(LaterBuild, ends_with_its_owner) {
  const TemporaryFolder folder;
  const std::string built = folder.path() / "built";
  { const LaterBuild build("sleep 0.5; touch " + built, folder.path() / "log"); }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_FALSE(std::filesystem::exists(built));
}

}  // namespace
}  // namespace tigon::cli
