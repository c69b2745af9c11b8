// Launch tables: who may choose, and what a file must be.
#include "harness/run/launch_choices.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/judge/verdict.h"
#include "harness/tests/temporary_folder.h"

namespace tigon {
namespace {

TEST(LaunchTable, without_a_choice_the_first_shape_that_fits) {
  LaunchTable table;
  EXPECT_EQ(table.shape("t", 64, 2, 5), 2u);
  table.choose({"t", 64}, 4);
  EXPECT_EQ(table.shape("t", 64, 2, 5), 4u);
  EXPECT_EQ(table.shape("t", 65, 2, 5), 2u);
  EXPECT_EQ(table.shape("u", 64, 2, 5), 2u);
  table.forget({"t", 64});
  EXPECT_EQ(table.shape("t", 64, 2, 5), 2u);
}

TEST(LaunchTable, a_shape_that_does_not_hold_the_row_is_never_taken) {
  LaunchTable table;
  table.choose({"t", 64}, 1);
  EXPECT_EQ(table.shape("t", 64, 2, 5), 2u);
  table.choose({"t", 64}, 5);
  EXPECT_EQ(table.shape("t", 64, 2, 5), 2u);
}

TEST(LaunchTable, says_what_was_asked) {
  LaunchTable table;
  table.listen();
  table.shape("t", 64, 2, 5);
  EXPECT_EQ(table.last_question().key, (LaunchTable::Key{"t", 64}));
  EXPECT_EQ(table.last_question().first, 2u);
  EXPECT_EQ(table.last_question().count, 5u);
}

TEST(LaunchFile, comes_back_as_it_was_written) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "table.json").string();
  write_launch_file(path,
                    {"a GPU", "2026-11-21", "cuda", "abc", {{{"t", 64}, 3, "id", 2e-6, 1e-6}}});
  const LaunchFile file = read_launch_file(path);
  EXPECT_EQ(file.machine, "a GPU");
  EXPECT_EQ(file.date, "2026-11-21");
  ASSERT_EQ(file.entries.size(), 1u);
  EXPECT_EQ(file.entries[0].key, (LaunchTable::Key{"t", 64}));
  EXPECT_EQ(file.entries[0].shape, 3u);
  EXPECT_EQ(file.entries[0].after_s, 1e-6);
}

TEST(LaunchFile, anything_else_is_refused) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "table.json").string();
  EXPECT_THROW(read_launch_file(path), UsageError);
  for (const char* text :
       {"", "{}", "[]", R"({"machine":1})",
        R"({"machine":"a","date":"b","executor":"c","commit":"d","entries":[{}]})"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(read_launch_file(path), UsageError) << text;
  }
}

}  // namespace
}  // namespace tigon
