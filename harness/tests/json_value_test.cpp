// SPDX-License-Identifier: Apache-2.0
// JSON values and their text.
#include "harness/json/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace tigon {
namespace {

std::string again(const std::string& text) { return Json::parse(text).dump(); }

// The message with which the text is refused.
std::string refusal(const std::string& text) {
  try {
    Json::parse(text);
  } catch (const Json::Error& error) {
    return error.what();
  }
  return "";
}

TEST(Json, text_comes_back_as_it_was_with_names_in_their_order) {
  const std::string text = R"({"z":1,"a":[true,false,null,-2.5,"x\n\"\\é"],"m":{}})";
  EXPECT_EQ(again(text), text);
  EXPECT_EQ(Json::parse(text).dump(1).substr(0, 22), "{\n \"z\": 1,\n \"a\": [\n  t");
}

TEST(Json, numbers_keep_their_kind_and_every_bit) {
  EXPECT_EQ(again("[18446744073709551615,-9223372036854775808,1.0]"),
            "[18446744073709551615,-9223372036854775808,1.0]");
  const double third = 1.0 / 3;
  EXPECT_EQ(Json::parse(Json(third).dump()).get<double>(), third);
  EXPECT_EQ(Json(std::numeric_limits<uint64_t>::max()).get<uint64_t>(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
}

TEST(Json, bytes_that_are_no_utf8_are_replaced) {
  EXPECT_EQ(Json(std::string("a\xff")).dump(), "\"a\xef\xbf\xbd\"");
}

TEST(Json, what_is_no_json_is_refused_with_the_reason) {
  EXPECT_NE(refusal("{\"a\":}"), "");
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("1 2"), "");
  EXPECT_EQ(refusal(R"({"a":1,"b":2,"a":3})"), "an object has 'a' twice");
  EXPECT_EQ(refusal(std::string(100000, '[')), "more than 64 values in one another");
  EXPECT_FALSE(Json::try_parse("{"));
}

TEST(Json, a_braced_list_of_names_and_values_is_an_object_and_any_other_an_array) {
  const Json object = {{"a", 1}, {"b", {{"c", "text"}}}};
  EXPECT_EQ(object.dump(), R"({"a":1,"b":{"c":"text"}})");
  const Json array = {"a", "b"};
  EXPECT_EQ(array.dump(), R"(["a","b"])");
  EXPECT_EQ(Json(std::map<std::string, int>{{"x", 1}}).dump(), R"({"x":1})");
  EXPECT_EQ(Json(std::vector<double>{1, 2.5}).dump(), "[1.0,2.5]");
}

TEST(Json, values_convert_to_what_they_are_and_say_so_when_they_are_not) {
  const Json json = Json::parse(R"({"n":3,"list":[1,2],"text":"t"})");
  const int n = json["n"];
  const std::vector<int> list = json["list"];
  EXPECT_EQ(n, 3);
  EXPECT_EQ(list, (std::vector<int>{1, 2}));
  EXPECT_EQ(json.at("n").get<double>(), 3.0);
  EXPECT_THROW(json["text"].get<int>(), Json::Error);
  EXPECT_THROW(json["list"].get<std::string>(), Json::Error);
  EXPECT_THROW(json.at("missing"), Json::Error);
  EXPECT_THROW(json["list"].at(2), Json::Error);
  EXPECT_TRUE(json["missing"].is_null());
  EXPECT_EQ(json.value("missing", "else"), "else");
}

TEST(Json, equal_by_value_whatever_the_order_of_names) {
  EXPECT_EQ(Json::parse(R"({"a":1,"b":2.0})"), Json::parse(R"({"b":2,"a":1.0})"));
  EXPECT_FALSE(Json::parse(R"({"a":1})") == Json::parse(R"({"a":1,"b":2})"));
  EXPECT_FALSE(Json(1) == Json("1"));
  EXPECT_TRUE(Json("x") == "x");
  EXPECT_TRUE(Json(2) > 1);
  EXPECT_FALSE(Json(-1) == Json(std::numeric_limits<uint64_t>::max()));
}

TEST(Json, members_are_added_changed_and_erased_in_place) {
  Json json;
  json["a"] = 1;
  json["list"].push_back("x");
  json.update({{"a", 2}, {"b", true}});
  EXPECT_EQ(json.dump(), R"({"a":2,"list":["x"],"b":true})");
  json.erase("a");
  for (auto [name, value] : json.items())
    if (name == "b") value = nullptr;
  EXPECT_EQ(json.dump(), R"({"list":["x"],"b":null})");
}

}  // namespace
}  // namespace tigon
