// SPDX-License-Identifier: Apache-2.0
// Launch tables as files, and the process that takes their shapes.
#include "kernels/device/launch_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "kernels/call/tigon.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

class LaunchFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "launch_file_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/table.tsv"; }
  void write(const std::string& text) const { std::ofstream(path()) << text; }
  std::string error() const {
    const tigon_status status = tigon_load_launch_table(path().c_str());
    return status.code == TIGON_INVALID ? status.message : "";
  }

 private:
  std::string folder_;
};

LaunchEntry entry(const std::string& device) {
  return {device, "2026-11-21", "cuda", "abc", {"t", 64}, {256, 2, 1, 3, 4}, "id", 2e-6, 1e-6};
}

TEST_F(LaunchFile, comes_back_as_it_was_written) {
  write_launch_file(path(), {entry("a GPU")});
  const std::vector<LaunchEntry> read = read_launch_file(path());
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].device, "a GPU");
  EXPECT_EQ(read[0].date, "2026-11-21");
  EXPECT_EQ(read[0].key, (LaunchTable::Key{"t", 64}));
  EXPECT_EQ(read[0].shape, (LaunchShape{256, 2, 1, 3, 4}));
  EXPECT_EQ(read[0].case_id, "id");
  EXPECT_EQ(read[0].before_s, 2e-6);
}

TEST_F(LaunchFile, says_line_and_column_of_what_is_wrong) {
  EXPECT_NE(error().find("cannot be read"), std::string::npos);
  write("");
  EXPECT_NE(error().find("is empty"), std::string::npos) << error();
  write("device\tdate\n");
  EXPECT_NE(error().find(":1: has no column \"executor\""), std::string::npos) << error();
  write_launch_file(path(), {entry("a GPU")});
  std::ofstream(path(), std::ios::app) << "too\tfew\n";
  EXPECT_NE(error().find(":3: has 2 columns, not 14"), std::string::npos) << error();
  LaunchEntry none = entry("a GPU");
  none.shape.lanes = 0;
  write_launch_file(path(), {none});
  EXPECT_NE(error().find(":2: column \"lanes\" is \"0\""), std::string::npos) << error();
}

constexpr LaunchShape kShapes[] = {{8, 1, 1}, {256, 2, 1, 3, 4}};

size_t taken() {
  return launch_table().shape("t", 64, kShapes, 2, 0, [](size_t) { return true; });
}

TEST_F(LaunchFile, gives_its_shapes_to_the_devices_that_it_names) {
  write_launch_file(path(), {entry("a GPU that nobody has")});
  ASSERT_EQ(tigon_load_launch_table(path().c_str()).code, TIGON_OK);
  EXPECT_EQ(taken(), 0u);
  write_launch_file(path(), {entry(current_device_name())});
  ASSERT_EQ(tigon_load_launch_table(path().c_str()).code, TIGON_OK);
  EXPECT_EQ(taken(), 1u);
  launch_table().forget({"t", 64});
  EXPECT_EQ(taken(), 0u);
}

}  // namespace
}  // namespace tigon
