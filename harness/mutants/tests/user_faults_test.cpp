// SPDX-License-Identifier: Apache-2.0
// A fault file of the user's: what the contracts and the tree say about it.
#include "harness/mutants/user_faults.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/run/check.h"

namespace tigon {
namespace {

class UserFaults : public ::testing::Test {
 protected:
  ~UserFaults() override { std::filesystem::remove(path_); }

  // What is said about a file behind its name; its faults are the tree's or those of a source.
  std::string complaint(const std::string& text, const std::string& source = "") const {
    std::ofstream(path_) << text;
    try {
      user_faults(path_, source);
    } catch (const UsageError& e) {
      const std::string line = e.what();
      EXPECT_EQ(line.rfind(path_ + ":", 0), 0u) << line;
      return line.substr(path_.size() + 1);
    }
    return "nothing";
  }

  const std::string path_ = std::filesystem::temp_directory_path() /
                            ("user_faults_test-" + std::to_string(getpid()) + ".faults");
};

std::string record(const std::string& on, const std::string& file, const std::string& text) {
  return "fault: mine.one\nwhat: w\non: " + on + "\nfile: " + file + "\nexpression:\n- " + text +
         "\n+ 0\n";
}

TEST_F(UserFaults, that_fit_the_tree_are_taken) {
  EXPECT_EQ(complaint(record("geglu forward", "kernels/geglu/geglu.cu", "0.044715f")), "nothing");
}

TEST_F(UserFaults, that_do_not_fit_get_one_line) {
  const std::string file = "kernels/geglu/geglu.cu", text = "0.044715f";
  EXPECT_EQ(complaint(""), "1: holds no fault; one begins with 'fault: name'");
  EXPECT_EQ(complaint("nonsense"), "1: is no field; a field is 'name: value'");
  EXPECT_EQ(complaint(record("gelu forward", file, text))
                .rfind("1: mine.one: no op 'gelu'; there are", 0),
            0u);
  EXPECT_EQ(complaint(record("geglu sideways", file, text)),
            "1: mine.one: geglu has no pass 'sideways'; it has forward, backward");
  EXPECT_EQ(complaint("fault: mine.one\nhint: (\n" + record("geglu forward", file, text).substr(16))
                .rfind("1: mine.one: hint '(' is not a regular expression", 0),
            0u);
  EXPECT_EQ(complaint(record("geglu forward", "geglu.cu", text)),
            "5: mine.one: no kernel source 'geglu.cu'; write a path such as "
            "kernels/rms_norm/rms_norm.cu");
  EXPECT_EQ(complaint(record("geglu forward", file, "0.5772f")),
            "5: mine.one: its text is not in kernels/geglu/geglu.cu; it must be there once");
}

TEST_F(UserFaults, of_a_source_name_it_and_are_in_it_once) {
  const std::string tree = TIGON_SOURCE_DIR, source = tree + "/kernels/geglu/geglu.cu";
  const std::string on = "geglu forward";
  EXPECT_EQ(complaint(record(on, "geglu.cu", "0.044715f"), source), "nothing");
  EXPECT_EQ(complaint(record(on, "kernels/geglu/geglu.cu", "0.044715f"), source),
            "5: mine.one: 'file: kernels/geglu/geglu.cu' is not that of --in; write 'file: "
            "geglu.cu'");
  EXPECT_EQ(complaint(record(on, "geglu.cu", "0.5772f"), source),
            "5: mine.one: its text is not in geglu.cu; it must be there once");
  std::ofstream(path_) << record(on, "ruff.toml", "0");
  EXPECT_THROW(user_faults(path_, tree + "/ruff.toml"), UsageError);
  EXPECT_THROW(user_faults(path_, tree + "/no.cu"), UsageError);
}

}  // namespace
}  // namespace tigon
