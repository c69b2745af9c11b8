// An option without effect is reported by name.
#include <gtest/gtest.h>

#include "harness/run/visibility.h"

namespace tigon {
namespace {

std::vector<Sight> sights_of(const char* op, const char* pass) {
  const OpSpec& spec = *find_op(op);
  for (const Pass& p : spec.passes)
    if (p.name == pass) return visibility_of(spec, p, DType::kBF16);
  return {};
}

TEST(Visibility, names_op_pass_and_option_that_does_nothing) {
  std::vector<std::string> wrong;
  for (const Sight& s : sights_of("relations", "centre"))
    if (!s.right()) wrong.push_back(text_of(s));
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0], "relations centre bf16 option unused: 0 budgets: by none of its cases");
}

TEST(Visibility, an_option_that_is_declared_invisible_must_not_show) {
  OpSpec op = *find_op("faulty");
  op.passes[0].invisible["factor"] = "it is hidden";
  int wrong = 0;
  for (const Sight& s : visibility_of(op, op.passes[0], DType::kF32)) {
    if (s.right()) continue;
    ++wrong;
    EXPECT_NE(text_of(s).find("option factor: declared invisible, but moves"), std::string::npos);
  }
  EXPECT_EQ(wrong, 1);
}

TEST(Visibility, of_a_sound_contract_is_complete) {
  for (const Sight& s : sights_of("faulty", "forward")) EXPECT_TRUE(s.right()) << text_of(s);
  for (const Sight& s : sights_of("relations", "weigh")) EXPECT_TRUE(s.right()) << text_of(s);
}

}  // namespace
}  // namespace tigon
