// SPDX-License-Identifier: Apache-2.0
// Where faults go in a source, and what is said when there is no such place.
#include "harness/mutants/mutate.h"

#include <gtest/gtest.h>

#include "harness/mutants/fault_file.h"

namespace tigon {
namespace {

using Kind = Edit::Kind;

Mutant fault(const std::string& name, std::vector<Edit> edits) {
  for (Edit& e : edits) e.file = "kernels/k.h";
  return {.name = name, .edits = std::move(edits), .source = "my.faults"};
}

// The mutated text behind the lines that name the file.
std::string with(const std::string& text, const std::vector<Mutant>& faults) {
  std::vector<NamedEdit> edits;
  for (const Mutant& m : faults)
    for (const Edit& e : m.edits) edits.push_back({&m, &e});
  const std::string out = mutated(text, "/src/kernels/k.h", edits);
  const std::string line = "#line 1 \"/src/kernels/k.h\"\n";
  const auto at = out.find(line);
  EXPECT_NE(at, std::string::npos) << out;
  return out.substr(at + line.size());
}

std::string complaint(const std::string& text, const std::vector<Mutant>& faults) {
  try {
    with(text, faults);
  } catch (const FaultFileError& e) {
    return e.what();
  }
  return "nothing";
}

const std::string kA = "::tigon::planted(\"a\")", kB = "::tigon::planted(\"b\")";

TEST(Mutated, has_each_kind_of_change) {
  const std::string text = "f(x,\n  y);\ng();\n";
  EXPECT_EQ(with(text, {}), text);
  EXPECT_EQ(with(text, {fault("a", {{.text = "x", .replacement = "0"}})}),
            "f((" + kA + " ? (0) : (x)),\n  y);\ng();\n");
  EXPECT_EQ(with(text, {fault("a", {{.kind = Kind::kStatement, .text = "g();"}})}),
            "f(x,\n  y);\n{ if (" + kA + ") {  } else { g(); } }\n");
  EXPECT_EQ(
      with(text, {fault("a", {{.kind = Kind::kInsert, .before = "y);", .replacement = "h();"}})}),
      "f(x,\n  y); if (" + kA + ") { h(); } \ng();\n");
  EXPECT_EQ(
      with(text, {fault("a", {{.kind = Kind::kInsert, .after = "g();", .replacement = "h();"}})}),
      "f(x,\n  y);\n if (" + kA + ") { h(); } g();\n");
}

TEST(Mutated, with_one_fault_needs_no_switch_and_moves_no_line) {
  const std::string text = "f(x,\n  y);\ng();\n";
  const Mutant m = fault("a", {{.text = "x,\ny", .replacement = "0"},
                               {.kind = Kind::kStatement, .text = "g();"},
                               {.kind = Kind::kInsert, .after = "g();", .replacement = "h();"}});
  EXPECT_EQ(with_one_fault(text, m), "f((0)\n);\n{ h(); }{  }\n");
  EXPECT_THROW(with_one_fault(text, fault("a", {{.text = "z", .replacement = "0"}})),
               FaultFileError);
}

TEST(Mutated, does_not_count_white_space_and_counts_words) {
  const std::string text = "int ab = a;\nint c =\n    a + ab;\n";
  EXPECT_EQ(
      with(text,
           {fault("a", {{.before = "c =", .text = "a\n+ab", .after = ";", .replacement = "0"}})}),
      "int ab = a;\nint c =\n    (" + kA + " ? (0) : (a + ab));\n");
  EXPECT_EQ(complaint(text, {fault("a", {{.text = "b", .replacement = "0"}})}),
            "my.faults:0: a: its text is not in kernels/k.h; it must be there once");
}

TEST(Mutated, keeps_every_line_where_it_is) {
  const Mutant m =
      fault("a", {{.kind = Kind::kInsert,
                   .before = "f();",
                   .replacement = "g();  // a comment\nh(\"//\");\n/* another */ i();"}});
  EXPECT_EQ(with("f();\nk();\n", {m}),
            "f(); if (" + kA + ") { g();               h(\"//\");               i(); } \nk();\n");
}

TEST(Mutated, lets_faults_share_a_place_and_lie_within_one_another) {
  const std::string text = "x = y + z;\n";
  EXPECT_EQ(with(text, {fault("a", {{.text = "y", .replacement = "0"}}),
                        fault("b", {{.text = "y", .replacement = "1"}})}),
            "x = (" + kA + " ? (0) : ((" + kB + " ? (1) : (y)))) + z;\n");
  EXPECT_EQ(with(text, {fault("a", {{.text = "z", .replacement = "0"}}),
                        fault("b", {{.text = "y + z", .replacement = "1"}})}),
            "x = (" + kB + " ? (1) : (y + (" + kA + " ? (0) : (z))));\n");
  EXPECT_EQ(complaint("x = y + z + w;\n", {fault("a", {{.text = "y + z", .replacement = "0"}}),
                                           fault("b", {{.text = "z + w", .replacement = "1"}})}),
            "my.faults:0: b: its text overlaps that of a; one must lie within the other, or apart");
}

TEST(Mutated, needs_its_text_once) {
  const std::string text = "a(); b(); a();\n";
  EXPECT_EQ(
      complaint(text, {fault("a", {{.kind = Kind::kStatement, .text = "a();"}})}),
      "my.faults:0: a: its text is 2 times in kernels/k.h; it must be there once: add '=' lines "
      "with what stands around it");
  EXPECT_EQ(
      with(text, {fault("a", {{.kind = Kind::kStatement, .before = "b();", .text = "a();"}})}),
      "a(); b(); { if (" + kA + ") {  } else { a(); } }\n");
}

TEST(Mutated, puts_statements_where_statements_can_stand) {
  const auto insert = [](const std::string& before) {
    return fault("a", {{.kind = Kind::kInsert, .before = before, .replacement = "f();"}});
  };
  const std::string text = "for (;;)\n  g();  // last\nx = h(i(), j);\n";
  EXPECT_EQ(complaint(text, {insert("for (;;)")}),
            "my.faults:0: a: insert: no statement can stand there; it comes behind ; { or }");
  EXPECT_EQ(complaint(text, {insert("g();  // last")}),
            "my.faults:0: a: insert: the text before it ends in a comment; leave the comment out");
  EXPECT_EQ(
      complaint(text, {fault("a", {{.kind = Kind::kStatement, .text = "h(i(), j)"}})}),
      "my.faults:0: a: statement: the text must end in ; or }; for less there is 'expression'");
  EXPECT_EQ(complaint(text, {fault("a", {{.text = "g();  // last", .replacement = "0"}})}),
            "my.faults:0: a: the text that is replaced ends in a comment; leave the comment out");
}

}  // namespace
}  // namespace tigon
