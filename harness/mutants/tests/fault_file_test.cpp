// SPDX-License-Identifier: Apache-2.0
// The format of fault files: what a record means, and one clear line for each mistake in it.
#include "harness/mutants/fault_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tigon {
namespace {

class FaultFile : public ::testing::Test {
 protected:
  ~FaultFile() override { std::filesystem::remove(path_); }

  std::vector<Mutant> read(const std::string& text) const {
    std::ofstream(path_) << text;
    return read_fault_file(path_);
  }
  // What is said about a file behind its name.
  std::string complaint(const std::string& text) const {
    try {
      read(text);
    } catch (const FaultFileError& e) {
      const std::string line = e.what();
      EXPECT_EQ(line.rfind(path_ + ":", 0), 0u) << line;
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      return line.substr(path_.size() + 1);
    }
    return "nothing";
  }

  const std::string path_ = std::filesystem::temp_directory_path() /
                            ("fault_file_test-" + std::to_string(getpid()) + ".faults");
};

const std::string kHead = "fault: a.b\nwhat: w\non: rope forward\nfile: kernels/rope/rope.cu\n";

TEST_F(FaultFile, holds_what_a_record_says) {
  const auto faults = read(
      "# A comment.\n"
      "define: far = gap=\\d{7,}\n"
      "fault: rope.wrong\n"
      "what: a long\n  sentence: with a colon\n"
      "on: rope forward backward, swiglu forward\n"
      "dtypes: bf16 f16\n"
      "hint: $far|(a|b)$\n"
      "group: memory_sync\n"
      "catalogue: 34\n"
      "host_only: it is slow\n"
      "equivalent: f32 rope backward: a proof: of something\n"
      "equivalent: all: another\n"
      "file: kernels/rope/rope.cu\n"
      "statement:\n"
      "= first();\n"
      "- second();\n"
      "-   third();\n"
      "+\n"
      "+ fourth();\n"
      "= fifth();\n"
      "\n"
      "fault: rope.other\nwhat: w\non: rope forward\nfile: f.h\ninsert:\n+ a();\n= b();\n");
  ASSERT_EQ(faults.size(), 2u);
  const Mutant& m = faults[0];
  EXPECT_EQ(m.name, "rope.wrong");
  EXPECT_EQ(m.what, "a long sentence: with a colon");
  ASSERT_EQ(m.targets.size(), 2u);
  EXPECT_EQ(m.targets[0].passes, (std::vector<std::string>{"forward", "backward"}));
  EXPECT_EQ(m.dtypes, (std::vector<DType>{DType::kBF16, DType::kF16}));
  EXPECT_EQ(m.hint, "gap=\\d{7,}|(a|b)$");
  EXPECT_EQ(m.group, MutantGroup::kMemorySync);
  EXPECT_EQ(m.executors, std::vector<std::string>{"checked"});
  EXPECT_EQ(m.catalogue, 34);
  EXPECT_EQ(m.host_only, "it is slow");
  EXPECT_EQ(m.line, 3);
  ASSERT_EQ(m.equivalents.size(), 2u);
  EXPECT_EQ(equivalence(m, "rope", "backward", DType::kF32), "a proof: of something");
  EXPECT_EQ(equivalence(m, "rope", "forward", DType::kF32), "another");
  ASSERT_EQ(m.edits.size(), 1u);
  EXPECT_EQ(m.edits[0].kind, Edit::Kind::kStatement);
  EXPECT_EQ(m.edits[0].before, "first();");
  EXPECT_EQ(m.edits[0].text, "second();\n  third();");
  EXPECT_EQ(m.edits[0].replacement, "fourth();");
  EXPECT_EQ(m.edits[0].after, "fifth();");
  EXPECT_EQ(faults[1].executors, std::vector<std::string>{"fast"});
  EXPECT_EQ(faults[1].edits[0].after, "b();");
}

TEST_F(FaultFile, that_is_wrong_gets_one_line_with_the_place_and_what_would_be_right) {
  const std::string change = "expression:\n- x\n+ y\n";
  EXPECT_EQ(complaint(kHead + change), "nothing");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nonsense\n", "1: is no field; a field is 'name: value'"},
      {"  more\n", "1: continues no field"},
      {"what: w\n", "1: 'what' stands before the first 'fault: name'"},
      {"fault: two words\n", "1: a fault's name is one word"},
      {kHead + "color: red\n" + change, "5: no field 'color'; there are fault, what"},
      {kHead + "what:\n" + change, "5: 'what' has no value"},
      {kHead + "hint: $none\n" + change, "5: $none is not defined"},
      {kHead + "define: x\n" + change, "5: define: write 'define: name = value'"},
      {kHead + "on: rope\n" + change, "5: on: write 'on: op pass"},
      {kHead + "dtypes: float\n" + change, "5: no element type 'float'; there are f32"},
      {kHead + "catalogue: first\n" + change, "5: catalogue: 'first' is no number"},
      {kHead + "group: cheat\n" + change, "5: no group 'cheat'"},
      {kHead + "executors: slow\n" + change, "5: no executor 'slow'"},
      {kHead + "equivalent: f32\n" + change, "5: equivalent: write where and why"},
      {kHead, "1: a.b has no 'expression:', 'statement:' or 'insert:'"},
      {"fault: a.b\nwhat: w\nfile: f\n" + change, "1: a.b has no 'on: op pass ...'"},
      {"fault: a.b\non: rope forward\nfile: f\n" + change, "1: a.b has no 'what"},
      {"fault: a.b\nexpression:\n- x\n+ y\n", "2: expression: which file?"},
      {kHead + "- x\n", "5: '-' belongs below 'expression:'"},
      {kHead + "expression: x\n", "5: expression: the code stands on lines of its own"},
      {kHead + "expression:\n-x\n", "6: a blank is missing behind '-'"},
      {kHead + "expression:\n+ y\n", "5: has no '-' line"},
      {kHead + "expression:\n- x\n", "5: has no '+' line"},
      {kHead + "expression:\n+ y\n- x\n", "7: '-' comes before '+'"},
      {kHead + "expression:\n- x\n+ y\n= z\n+ y\n", "9: '+' comes once"},
      {kHead + "insert:\n- x\n+ y\n", "5: insert: takes nothing away"},
      {kHead + "insert:\n+ y\n", "5: insert: has no '=' line"},
  };
  for (const auto& [text, said] : cases)
    EXPECT_EQ(complaint(text).substr(0, said.size()), said) << text;
}

TEST_F(FaultFile, has_each_name_once) {
  const std::string one = kHead + "expression:\n- x\n+ y\n";
  std::ofstream(path_) << one << one;
  EXPECT_THROW(read_fault_files({path_}), FaultFileError);
  std::ofstream(path_) << one;
  EXPECT_EQ(read_fault_files({path_}).size(), 1u);
  EXPECT_THROW(read_fault_files({path_, path_}), FaultFileError);
  EXPECT_THROW(read_fault_files({path_ + "-absent"}), FaultFileError);
}

}  // namespace
}  // namespace tigon
