// SPDX-License-Identifier: Apache-2.0
// What a pass is timed beside.
#include "harness/measure/yardstick.h"

#include <gtest/gtest.h>

#include "harness/measure/measure_cell.h"

namespace tigon {
namespace {

constexpr size_t kPlenty = size_t{1} << 30;

Status run(const Yardstick& yardstick, const Case& c) {
  const Contender contender = yardstick.contender(c);
  return contender.implementation->run(c.dtype, {}, nullptr);
}

TEST(Yardstick, is_a_copy_of_the_least_bytes_on_each_set) {
  const Case c = parse_case("swiglu/forward/fused/bf16/T=4,F=64");
  const auto copy = Yardstick::of(c, 3, kPlenty);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->implementation.name, kCopyYardstick);
  for (int call = 0; call < 7; ++call) EXPECT_TRUE(run(*copy, c).ok());
  const auto bytes = static_cast<size_t>(minimum_bytes(c));
  EXPECT_EQ(bytes, 3 * 4 * 64 * 2) << "a whole number of pieces of 16 bytes, read and written";
  EXPECT_TRUE(Yardstick::of(c, 3, 3 * bytes));
  EXPECT_FALSE(Yardstick::of(c, 3, 3 * bytes - 1)) << "does not fit";
}

TEST(Yardstick, is_the_products_that_a_contract_names) {
  const Case c = parse_case("linear_cross_entropy/forward_backward/fused/bf16/T=5,H=8,V=33");
  const auto products = Yardstick::of(c, 3, kPlenty);
  ASSERT_TRUE(products);
  EXPECT_EQ(products->implementation.name, kProductsYardstick);
  EXPECT_TRUE(run(*products, c).ok());
  const size_t bytes = 3 * (5 + 33 + 5) * 128;  // each product has its own operands, in whole lines
  EXPECT_TRUE(Yardstick::of(c, 3, bytes));
  EXPECT_FALSE(Yardstick::of(c, 3, bytes - 1)) << "does not fit";
}

TEST(Yardstick, leaves_out_products_that_nothing_asks_for) {
  const auto count = [](const std::string& pass, const std::string& options) {
    return products_of(
               parse_case("linear_cross_entropy/" + pass + "/fused/bf16/T=5,H=8,V=33" + options))
        .size();
  };
  EXPECT_EQ(count("forward", ""), 1u);
  EXPECT_EQ(count("forward_backward", ""), 3u);
  EXPECT_EQ(count("forward_backward", ",dw=absent"), 2u) << "a frozen weight";
  EXPECT_EQ(count("forward_backward", ",dw=absent,dw_accum=given"), 3u);
  EXPECT_EQ(count("forward_backward", ",dx=absent,dw=absent"), 1u);
}

TEST(Yardstick, is_named_in_the_record_of_what_was_timed_beside_it) {
  const Case c = parse_case("rms_norm/forward/fused/bf16/T=4,H=64");
  const Timing timing{.impl = "fused", .basis = "graph", .samples = {2e-3, 4e-3, 4e-3}};
  const Json fields = bench_fields(c, timing, 2, {}, YardstickTime{kCopyYardstick, 3e-3});
  EXPECT_EQ(fields["yardstick"], "copy");
  EXPECT_EQ(fields["yardstick_s"], 3e-3);
  EXPECT_EQ(fields["share_of_yardstick"], 0.75);
  EXPECT_FALSE(bench_fields(c, timing, 2, {}).contains("yardstick"));
}

}  // namespace
}  // namespace tigon
