// SPDX-License-Identifier: Apache-2.0
// A part of the cases in which every kind is met.
#include "harness/run/cases/kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "harness/run/cases/plan.h"
#include "harness/run/check.h"

namespace tigon {
namespace {

// What is met, told otherwise than kinds.cpp tells it: from the words of the ids.
std::set<std::string> words_of(const std::vector<Case>& cases, InTypes in_types = InTypes::kEach) {
  std::set<std::string> words;
  for (const Case& c : cases) {
    const std::string id = case_id(c);
    const std::string kernel = c.op + "/" + c.pass + "/" + c.impl + "/";
    size_t begin = id.find('/', kernel.size()) + 1;
    for (size_t end; begin <= id.size(); begin = end + 1) {
      end = std::min(id.find(',', begin), id.size());
      std::string word = id.substr(begin, end - begin);
      if (word.rfind("shift=", 0) == 0 || word.rfind("skew=", 0) == 0 || word.rfind("gap=", 0) == 0)
        word.resize(word.find('='));  // how far does not matter
      const bool is_size = c.axes.count(word.substr(0, word.find('='))) > 0;
      if (is_library(c.impl)) {
        const bool counts = in_types == InTypes::kEach || word.rfind("inputs=", 0) != 0;
        if (counts && !is_size && word.rfind("prop=", 0) != 0 && word != "shift" &&
            word != "skew" && word != "gap")
          words.insert(kernel + word);
        words.insert(kernel + std::string(name_of(c.dtype)));
        continue;
      }
      const bool is_typed = in_types == InTypes::kEach ? !is_size : word.rfind("inputs=", 0) == 0;
      words.insert(kernel + (is_typed ? std::string(name_of(c.dtype)) + "/" : "") + word);
    }
  }
  return words;
}

// Chosen once for all ops: on a GPU each choice is made by a process of its own.
std::vector<Case> all_cases(const std::string& op) {
  static const std::vector<Case> all = select_cases({});
  std::vector<Case> cases;
  std::copy_if(all.begin(), all.end(), std::back_inserter(cases),
               [&](const Case& c) { return c.op == op; });
  return cases;
}

TEST(EachKindOnce, every_word_of_the_cases_is_met_by_few) {
  for (const OpSpec& op : all_ops()) {
    const std::vector<Case> all = all_cases(op.name), part = each_kind_once(all);
    EXPECT_EQ(words_of(part), words_of(all)) << op.name;
    EXPECT_LT(2 * part.size(), all.size()) << op.name;
  }
}

TEST(EachKindOnce, cases_stay_in_order_and_come_once) {
  const std::vector<Case> all = all_cases("rope"), part = each_kind_once(all);
  size_t next = 0;
  for (const Case& c : part) {
    while (next < all.size() && case_id(all[next]) != case_id(c)) ++next;
    ASSERT_LT(next++, all.size()) << case_id(c);
  }
}

constexpr double kMost = 2 << 20;  // bytes

TEST(PartOfRun, has_no_large_case_and_every_kind_of_the_others_in_any_type) {
  for (const OpSpec& op : all_ops()) {
    std::vector<Case> all = all_cases(op.name);
    const std::vector<Case> part = part_of_run(all);
    const auto is_large = [](const Case& c) {
      return has_long_axis(c) || minimum_bytes(c) > kMost;
    };
    EXPECT_GT(std::erase_if(all, is_large), 0u) << op.name;
    EXPECT_TRUE(std::none_of(part.begin(), part.end(), is_large)) << op.name;
    EXPECT_EQ(words_of(part, InTypes::kAny), words_of(all, InTypes::kAny)) << op.name;
    EXPECT_LT(part.size(), each_kind_once(all).size()) << op.name;
  }
}

TEST(PartOfRun, draws_the_types_of_properties) {
  std::map<DType, int> properties;
  for (const OpSpec& op : all_ops())
    for (const Case& c : part_of_run(all_cases(op.name)))
      if (!c.property.empty()) ++properties[c.dtype];
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    EXPECT_GT(properties[dtype], (properties[DType::kF32] + properties[DType::kBF16]) / 4);
}

TEST(EachKindOnce, nothing_is_left_out_of_one_and_of_none) {
  EXPECT_TRUE(each_kind_once({}).empty());
  const std::vector<Case> one = {all_cases("softmax").front()};
  EXPECT_EQ(each_kind_once(one).size(), 1u);
}

}  // namespace
}  // namespace tigon
