// SPDX-License-Identifier: Apache-2.0
// The grammar of -a and the names it accepts.
#include "harness/cli/options/axis_values.h"

#include <gtest/gtest.h>

#include "harness/judge/verdict.h"

namespace tigon::cli {
namespace {

using Values = std::vector<int64_t>;

OpSpec op_with_axes(std::vector<Axis> axes) {
  OpSpec op;
  op.name = "some_op";
  for (const Axis axis : axes) op.axes.push_back({axis, {}, {}, {}, {}});
  return op;
}

// The message of the UsageError that parsing gives; "" when there is none.
std::string error_of(const std::vector<std::string>& arguments) {
  const OpSpec op = op_with_axes({{"T", "tokens"}, {"V", "vocabulary size"}});
  try {
    parse_axes(arguments, {&op});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(AxisValues, every_form_of_the_grammar) {
  EXPECT_EQ(parse_axis_values("T=128").values, (Values{128}));
  EXPECT_EQ(parse_axis_values("V=[32000,128256]").values, (Values{32000, 128256}));
  EXPECT_EQ(parse_axis_values("V=[32000,128256]").axis, "V");
  EXPECT_EQ(parse_axis_values("T=[10:16:3]").values, (Values{10, 13, 16})) << "both ends belong";
  EXPECT_EQ(parse_axis_values("T=[10:15:3]").values, (Values{10, 13}));
  EXPECT_EQ(parse_axis_values("T=[3:5]").values, (Values{3, 4, 5}));
  EXPECT_EQ(parse_axis_values("T[pow2]=[10:12]").values, (Values{1024, 2048, 4096}));
  EXPECT_EQ(parse_axis_values("T[pow2]=[4:10:2]").values, (Values{16, 64, 256, 1024}));
  EXPECT_EQ(parse_axis_values("T=[1k,1Ki,2M,0]").values, (Values{1000, 1024, 2000000, 0}));
  EXPECT_EQ(parse_axis_values("T=[5,3:6,5]").values, (Values{5, 3, 4, 6})) << "each value once";
}

TEST(AxisValues, what_is_wrong_is_one_line_that_says_what_would_be_right) {
  const struct {
    std::string argument, says;
  } kWrong[] = {
      {"T=-5", "'-5': a size is 1 or more, or 0 where the op can have nothing along the axis"},
      {"T=[8,-1]", "'-1': a size is 1 or more"},
      {"T", "not an axis and its values; write T=128"},
      {"=5", "not an axis and its values"},
      {"T=", "no value is given"},
      {"T=[]", "no value is given"},
      {"T=[", "a bracket is missing"},
      {"T=[1,2", "a bracket is missing"},
      {"T=1]", "a bracket is missing"},
      {"T=[1,,2]", "a size is missing"},
      {"T=abc", "'abc' is not a size"},
      {"T=1x", "'1x' is not a size"},
      {"T=1.5", "'1.5' is not a size"},
      {"T=[1:2:3:4]", "too many colons"},
      {"T=[5:1]", "ends before it starts"},
      {"T=[1:5:0]", "stride of '1:5:0' is 0"},
      {"T=[0:1000000]", "more than 4096 values"},
      {"T[log]=[1]", "'[log]' is not known"},
      {"T[pow2]=[99]", "2^99 is too large"},
      {"[pow2]=[4:10]", "not an axis"},
      {"T=99999999999999999999", "is too large"},
      {"T=9000000000G", "is too large"},
      {"Q=5", "some_op has no axis 'Q'; its axes are T, V"},
  };
  for (const auto& [argument, says] : kWrong) {
    const std::string error = error_of({argument});
    EXPECT_NE(error.find(says), std::string::npos) << argument << " gave: " << error;
    EXPECT_NE(error.find(argument), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_NE(error_of({"T=1", "T=2"}).find("given twice"), std::string::npos);
}

TEST(AxisValues, several_axes_are_kept_by_name) {
  const OpSpec op = op_with_axes({{"T", "tokens"}, {"V", "vocabulary size"}});
  const auto axes = parse_axes({"T=1", "V=[2,3]"}, {&op});
  EXPECT_EQ(axes.at("T"), (Values{1}));
  EXPECT_EQ(axes.at("V"), (Values{2, 3}));
}

}  // namespace
}  // namespace tigon::cli
