// SPDX-License-Identifier: Apache-2.0
// RecordWriter: whole lines whatever happens, valid JSON, the schema.
#include "harness/record/record_writer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <regex>

#include "harness/record/declaration.h"
#include "harness/record/environment.h"
#include "harness/record/record_reader.h"
#include "harness/record/run_id.h"
#include "harness/tests/program_records.h"
#include "harness/tests/temporary_folder.h"

namespace tigon {
namespace {

constexpr const char* kRunId = "20261121T074500Z-1a2b3c4d";

const Json kEnd = {{"passed", 1},    {"failed", 0},      {"skipped", 0},
                   {"exit_code", 0}, {"seconds_s", 0.5}, {"interrupted", false}};

TEST(RecordWriter, writes_one_line_per_record_with_the_common_keys) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "run" / "records.jsonl";
  RecordWriter writer(path, kRunId);
  writer.write("end", kEnd);
  writer.write("end", kEnd);
  writer.close();
  const auto lines = records_in(path);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["record"], "end");
  EXPECT_EQ(lines[0]["run_id"], kRunId);
  EXPECT_EQ(schema_violation({lines[0]}), "");
}

TEST(RecordWriter, run_record_is_valid) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  RecordWriter writer(path, new_run_id());
  writer.write("run", run_fields({"./tigon", "run"}, 42, {{"kind", "host"}}, {{"nightly", "yes"}}));
  const auto lines = records_in(path);
  EXPECT_EQ(schema_violation({lines.at(0)}), "");
  EXPECT_GT(lines[0]["host"]["memory_bytes"], 1 << 20);
  EXPECT_FALSE(lines[0]["host"]["cpu"].get<std::string>().empty());
}

TEST(RecordWriter, a_run_is_of_the_commit_that_it_is_told) {
  setenv("TIGON_COMMIT", "0123456789abcdef", 1);
  const Json run = run_fields({"./tigon", "run"}, 42, {{"kind", "host"}}, Json::object());
  unsetenv("TIGON_COMMIT");
  EXPECT_EQ(run["tool"]["commit"], "0123456789abcdef");
  EXPECT_EQ(run["tool"]["dirty"], false);
}

TEST(RecordWriter, schema_sees_a_missing_key_and_a_wrong_type) {
  Json end = kEnd;
  end.update({{"record", "end"},
              {"schema_version", schema_version()},
              {"run_id", kRunId},
              {"time", utc_now()}});
  EXPECT_EQ(schema_violation({end}), "");
  Json wrong = end;
  wrong["passed"] = "1";
  EXPECT_NE(schema_violation({wrong}), "");
  end.erase("interrupted");
  EXPECT_NE(schema_violation({end}).find("no \"interrupted\""), std::string::npos);
}

TEST(RecordWriter, the_declaration_says_what_names_a_record) {
  EXPECT_EQ(identity_of("check"), (std::vector<std::string>{"case_key", "executor"}));
  EXPECT_EQ(identity_of("end"), std::vector<std::string>{});
  EXPECT_EQ(identity_of("soak"), std::nullopt);
  EXPECT_EQ(identity_of("dtype"), std::nullopt);
}

TEST(RecordWriter, nonfinite_numbers_become_null_and_are_named) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const Json record = without_nonfinite({{"x", 1.5}, {"outputs", {{{"got", nan}}}}, {"y", {-inf}}});
  EXPECT_EQ(record.dump(), R"({"x":1.5,"outputs":[{"got":null}],"y":[null],)"
                           R"("nonfinite":{"/outputs/0/got":"nan","/y/0":"-inf"}})");
}

TEST(RecordWriter, doubles_come_back_to_the_bit) {
  const double third = 1.0 / 3.0;
  EXPECT_EQ(Json::parse(Json(third).dump()).get<double>(), third);
}

TEST(RecordWriter, a_torn_last_line_is_cut_off_when_the_file_is_continued) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  std::ofstream(path) << "{\"a\":1}\n{\"b\":";
  RecordWriter writer(path, kRunId);
  writer.write("end", kEnd);
  const auto lines = records_in(path);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["a"], 1);
  EXPECT_EQ(lines[1]["record"], "end");
}

TEST(RecordWriter, a_file_that_grew_since_it_was_read_is_not_continued) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  RecordWriter(path, kRunId).write("end", kEnd);
  const uintmax_t known = read_records(path).bytes;
  RecordWriter(path, kRunId, known).write("end", kEnd);
  EXPECT_THROW(RecordWriter(path, kRunId, known), RecordError);
  EXPECT_THROW(RecordWriter(path, kRunId, 0), RecordError);
  EXPECT_EQ(records_in(path).size(), 2u);
}

TEST(RecordWriter, a_torn_line_counts_as_read) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  std::ofstream(path) << "{\"a\":1}\n{\"b\":";
  RecordWriter(path, kRunId, read_records(path).bytes).write("end", kEnd);
  EXPECT_EQ(records_in(path).size(), 2u);
}

TEST(RecordWriter, a_full_disk_is_one_clear_line) {
  try {
    RecordWriter("/dev/full", kRunId).write("end", kEnd);
    FAIL() << "no error";
  } catch (const RecordError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cannot write /dev/full: No space left on device"), std::string::npos);
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(RecordWriter, a_folder_that_cannot_be_made_is_an_error) {
  EXPECT_THROW(RecordWriter("/proc/no/records.jsonl", kRunId), RecordError);
}

TEST(RecordWriter, every_finished_line_survives_kill_9) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  const pid_t child = fork();
  if (child == 0) {
    RecordWriter writer(path, kRunId);
    for (int i = 0; i < 5; ++i) writer.write("end", kEnd);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(records_in(path).size(), 5u);
}

TEST(RunId, is_safe_as_a_file_name_and_new_each_time) {
  const std::string id = new_run_id();
  EXPECT_TRUE(std::regex_match(id, std::regex("[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}"))) << id;
  EXPECT_NE(id, new_run_id());
  EXPECT_TRUE(
      std::regex_match(utc_now(), std::regex("[0-9-]{10}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z")))
      << utc_now();
}

}  // namespace
}  // namespace tigon
