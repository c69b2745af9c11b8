// SPDX-License-Identifier: Apache-2.0
// Planted faults in programs of their own: how such a program ended, and how it was ended.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "harness/mutants/external.h"
#include "harness/run/check.h"
#include "harness/tests/temporary_folder.h"

namespace tigon {
namespace {

constexpr const char* kCaught =
    R"({"group": "comparator", "name": "a", "what": "w", "caught": true, "by": ["t"]})";
constexpr const char* kMissed =
    R"({"group": "comparator", "name": "b", "what": "w", "caught": false, "by": []})";

// A program that prints a line and ends with a code.
class Program {
 public:
  Program(const char* line, int code) {
    const auto file = folder_.path() / "program";
    std::ofstream(file) << "#!/bin/sh\necho '" << line << "'\nexit " << code << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    group_ = {"comparator", file.string()};
  }

  // Its faults that were not caught; what it is called when it is itself the fault: "program".
  std::vector<std::string> survivors(const std::function<void()>& on_line = [] {}) const {
    std::vector<std::string> names;
    run_external(group_, [&](const ExternalResult& r) {
      on_line();
      if (!r.caught) names.push_back(r.name);
    });
    return names;
  }

 private:
  TemporaryFolder folder_;
  ExternalGroup group_;
};

using Names = std::vector<std::string>;

TEST(External, AProgramThatEndsBadlyIsASurvivor) {
  EXPECT_EQ(Program(kCaught, 0).survivors(), Names{});
  EXPECT_EQ(Program(kMissed, 1).survivors(), Names{"b"});
  EXPECT_EQ(Program(kCaught, 1).survivors(), Names{"program"});
  EXPECT_EQ(Program("no JSON", 0).survivors(), Names{"program"});
}

TEST(External, AnInterruptedProgramIsNone) {
  const Program ends_badly(kCaught, 130);
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        exit(ends_badly.survivors([] { raise(SIGINT); }) == Names{} ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tigon
