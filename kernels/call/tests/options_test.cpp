// SPDX-License-Identifier: Apache-2.0
// How the options of a call come into the arguments of an op.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/call/erase.h"
#include "kernels/call/typed.h"
#include "most_options.h"

namespace tigon::call {
namespace {

using Args = MostOptions<BF16>;

std::vector<double> options_of(const Args& args) {
  std::vector<double> values;
  for_each_option<Args>(
      [&](const auto& option) { values.push_back(static_cast<double>(args.*(option.member))); });
  return values;
}

// A call with every option, each unlike its default.
class Options : public testing::Test {
 protected:
  Options() {
    for (const double value : options_of(given_)) {
      const auto index = static_cast<int32_t>(options_.size());
      options_.push_back({index, 0, value == 1 ? 0.0 : 1.0});
    }
  }
  bool fill(Args* args) {
    tigon_call call = *call_.get();
    call.options = options_.data();
    call.option_count = static_cast<int32_t>(options_.size());
    return fill_args(call, args);
  }
  std::vector<double> values() const {
    std::vector<double> values(options_.size());
    for (const tigon_option& option : options_)
      values[static_cast<size_t>(option.index)] = option.value;
    return values;
  }

  const Args given_ = every_tensor_given<Args>(8);
  const Call<Args> call_{given_};
  std::vector<tigon_option> options_;
};

TEST_F(Options, are_taken_in_any_order) {
  for (int turn = 0; turn < 3; ++turn) {
    Args args;
    ASSERT_TRUE(fill(&args));
    EXPECT_EQ(options_of(args), values());
    if (turn == 0) std::reverse(options_.begin(), options_.end());
    if (turn == 1) std::rotate(options_.begin(), options_.begin() + 3, options_.end());
  }
}

TEST_F(Options, count_last_where_they_are_given_twice) {
  const std::vector<double> once = values();
  const std::vector<tigon_option> all = options_;
  for (tigon_option& option : options_) option.value = 1 - option.value;
  options_.insert(options_.end(), all.begin(), all.end());
  Args args;
  ASSERT_TRUE(fill(&args));
  EXPECT_EQ(options_of(args), once);
}

TEST_F(Options, that_are_unknown_are_refused_wherever_they_stand) {
  const std::vector<tigon_option> all = options_;
  for (size_t i = 0; i < all.size(); ++i)
    for (const int32_t index : {-1, static_cast<int32_t>(all.size())}) {
      options_ = all;
      options_[i].index = index;
      Args args;
      EXPECT_FALSE(fill(&args)) << i;
    }
}

TEST_F(Options, whose_type_does_not_hold_the_value_are_refused_though_another_follows) {
  options_.insert(options_.begin(), tigon_option{0, 0, 0.5});  // a whole number
  Args args;
  EXPECT_FALSE(fill(&args));
}

}  // namespace
}  // namespace tigon::call
