// SPDX-License-Identifier: Apache-2.0
// Logs of learners in the three layouts, and lines that cannot be read.
#include "convergence/next_action/logs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "convergence/converge.h"

namespace tigon::convergence::next_action {
namespace {

class Logs : public testing::Test {
 protected:
  ~Logs() override { std::filesystem::remove(file_); }

  Log read(const std::string& text) {
    std::ofstream(file_, std::ios::binary) << text;
    return read_log(file_);
  }

  std::string problem_with(const std::string& text) {
    try {
      read(text);
    } catch (const ConvergeError& error) {
      EXPECT_EQ(error.exit_code, 2);
      return error.what();
    }
    return "none";
  }

  std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("tigon-log-" + std::to_string(getpid()) + ".csv");
};

constexpr const char* kMooc = "ACTIONID\tUSERID\tTARGETID\tTIMESTAMP\n";
constexpr const char* kJodie =
    "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n";
constexpr const char* kOulad = "code_module,code_presentation,id_student,id_site,date,sum_click\n";

// Ten lines of learner `who`: resource r0 at time 0.5 to resource r9 at time 9.5, or the last
// first.
std::string ten_lines(const std::string& who, bool last_first = true) {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    const std::string n = std::to_string(last_first ? 9 - i : i);
    text += n + "\t" + who + "\tr" + n + "\t" + n + ".5\n";
  }
  return text;
}

TEST_F(Logs, OfActMoocAreSortedByTimeOfEachLearner) {
  const Log log = read(kMooc + ten_lines("ann smith") + "8\tbob\tr3\t7\n" + ten_lines("7", false));
  EXPECT_EQ(log.layout, "act-mooc");
  EXPECT_FALSE(log.daily);
  ASSERT_EQ(log.learners.size(), 2u);
  EXPECT_EQ(log.learners[0], (Sequence{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(log.learners[1], log.learners[0]);
  EXPECT_EQ(log.vocabulary, 10);
  EXPECT_EQ(log.left_out, 1);
}

// What only learners use who are left out is no resource.
TEST_F(Logs, NumberTheResourcesThatAreUsed) {
  const Log log = read(kMooc + std::string("0\tbob\tother\t0\n") + ten_lines("ann"));
  EXPECT_EQ(log.vocabulary, 10);
  EXPECT_EQ(log.learners[0].front(), 0);
}

TEST_F(Logs, OfJodieMayEndWithFeatures) {
  std::string published = kJodie, processed = ",u,i,ts,label,idx\n";
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i), item = std::to_string(i % 3);
    published += "5,x" + item + "," + n + ".0,0,-0.3,0.1,2e-3\r\n";
    processed += n + ",5,x" + item + "," + n + ".0,0," + n + "\n";
  }
  for (const std::string& text : {published, processed, "\xef\xbb\xbf" + published}) {
    const Log log = read(text);
    EXPECT_EQ(log.layout, "JODIE");
    ASSERT_EQ(log.learners.size(), 1u);
    EXPECT_EQ(log.learners[0], (Sequence{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  }
}

// Quoted fields, days before the first, and the order of the file within a day; a student of two
// presentations counts as two.
TEST_F(Logs, OfOuladHaveDays) {
  std::string text = kOulad;
  for (const int flip : {0, 1})  // the two sites of each day
    for (int i = 9; i >= 0; --i)
      text += std::string("\"AAA\",\"") + (flip == 0 ? "2013J" : "2014B") +
              "\",\"28400\",\"site, " + std::to_string(i ^ flip) + "\",\"" +
              std::to_string(-(i / 2)) + "\",\"4\"\n";
  const Log log = read(text);
  EXPECT_EQ(log.layout, "OULAD");
  EXPECT_TRUE(log.daily);
  ASSERT_EQ(log.learners.size(), 2u);
  // Sites 9, 8 on day -4, 7, 6 on day -3, ..., numbered as they are used.
  EXPECT_EQ(log.learners[0], (Sequence{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(log.learners[1], (Sequence{1, 0, 3, 2, 5, 4, 7, 6, 9, 8}));
}

TEST_F(Logs, NameTheLineThatCannotBeRead) {
  const std::string good = kMooc + ten_lines("ann");
  EXPECT_NE(problem_with(good + "1\tann\tr1\n").find("line 12: 3 fields"), std::string::npos);
  EXPECT_NE(problem_with(good + "\n1\tann\tr1\tnoon\n").find("line 13: the time 'noon'"),
            std::string::npos);
  EXPECT_NE(problem_with(good + "1\tann\tr1\tnan\n").find("line 12"), std::string::npos);
  EXPECT_NE(problem_with(good + "1\t\tr1\t3\n").find("line 12: column 2 is empty"),
            std::string::npos);
  EXPECT_NE(problem_with(good + "1\tann\t\t3\n").find("line 12: column 3 is empty"),
            std::string::npos);
}

TEST_F(Logs, NameTheLayoutsWhenTheHeaderIsOfNone) {
  for (const char* text : {"student,page,when\n1,2,3\n", "", "\n"}) {
    const std::string problem = problem_with(text);
    EXPECT_NE(problem.find(file_.string()), std::string::npos) << problem;
    EXPECT_THROW(require_log(file_), ConvergeError);
  }
  const std::string problem = problem_with("student,page,when\n");
  for (const char* layout : {"line 1", "ACTIONID", "user_id,item_id", "id_student"})
    EXPECT_NE(problem.find(layout), std::string::npos) << problem;
  EXPECT_EQ(problem.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace tigon::convergence::next_action
