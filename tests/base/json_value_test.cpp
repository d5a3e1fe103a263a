#include "base/json_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

namespace weir {
namespace {

using Library = nlohmann::ordered_json;

// Text of any bytes: some are ASCII, some UTF-8, some neither.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kParts = {"a", "\"",     "\\", "\n",   "\x01", "\x7f",
                                                  "ä", "\u2028", "😀", "\xff", "\xc3"};
  std::string text;
  for (auto left = random() % 6; left > 0; --left) text += kParts[random() % kParts.size()];
  return text;
}

double random_real(std::mt19937& random) {
  switch (random() % 5) {
    case 0:
      return std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 2000) - 1000);
    case 1:
      return static_cast<double>(random() % 1000);
    case 2:
      return -static_cast<double>(random()) / 1000;
    case 3:
      return std::numeric_limits<double>::infinity();
    default:
      return -0.0;
  }
}

// The same value twice: ours, and the library's.
std::pair<Json, Library> random_value(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 8 : 6)) {
    case 0:
      return {};
    case 1: {
      const bool value = random() % 2 == 0;
      return {value, value};
    }
    case 2: {
      const auto value = static_cast<std::int64_t>(random()) - (1LL << 31);
      return {value, value};
    }
    case 3: {
      const std::uint64_t value = (std::uint64_t{random()} << 32) + random();
      return {value, value};
    }
    case 4: {
      const double value = random_real(random);
      return {value, value};
    }
    case 5: {
      const std::string value = random_text(random);
      return {value, value};
    }
    case 6: {
      std::pair made{Json::array(), Library::array()};
      for (auto left = random() % 5; left > 0; --left) {
        auto [own, theirs] = random_value(random, depth - 1);
        made.first.push_back(std::move(own));
        made.second.push_back(std::move(theirs));
      }
      return made;
    }
    default: {
      std::pair made{Json::object(), Library::object()};
      for (auto left = random() % 20; left > 0; --left) {
        const std::string name = "n" + std::to_string(random() % 25);
        auto [own, theirs] = random_value(random, depth - 1);
        made.first[name] = std::move(own);
        made.second[name] = std::move(theirs);
      }
      return made;
    }
  }
}

TEST(JsonValue, is_written_and_read_as_the_library_does) {
  std::mt19937 random(20261117);
  for (int round = 0; round < 3000; ++round) {
    const auto [own, theirs] = random_value(random, 4);
    for (const bool is_ascii : {false, true})
      for (const int indent : {-1, 0, 1, 3})
        ASSERT_EQ(own.dump(indent, is_ascii), theirs.dump(indent, ' ', is_ascii, Library::error_handler_t::replace));
    const std::string text = own.dump();
    const Json back = Json::parse(text);
    ASSERT_EQ(back.dump(), Library::parse(text).dump()) << text;
    ASSERT_EQ(back, Json::parse(own.dump(2))) << text;
  }
}

TEST(JsonValue, accepts_the_texts_that_the_library_accepts) {
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = random_value(random, 3).first.dump();
    for (auto changes = random() % 3; changes > 0; --changes)
      text[random() % text.size()] = "{}[]\",:01-e.\\ntrue"[random() % 18];
    const auto own = Json::parse_if_valid(text);
    const Library theirs = Library::parse(text, nullptr, false);
    ASSERT_EQ(own.has_value(), !theirs.is_discarded()) << text;
    if (own) {
      ++accepted;
      ASSERT_EQ(own->dump(), theirs.dump()) << text;
    }
  }
  EXPECT_GT(accepted, 2000);
}

TEST(JsonValue, of_members_with_one_name_the_last_counts) {
  EXPECT_EQ(Json::parse(R"({"a": 1, "b": 2, "a": 3})").dump(), R"({"a":3,"b":2})");
  std::string text = "{";
  for (int i = 0; i < 40; ++i)
    text += "\"n" + std::to_string(i % 20) + "\":" + std::to_string(i) + (i < 39 ? "," : "}");
  EXPECT_EQ(Json::parse(text).dump(), Library::parse(text).dump());
}

TEST(JsonValue, many_members_are_read_in_less_than_quadratic_time) {
  std::string text = "{\"n\":0";
  for (int i = 0; i < 300'000; ++i) text += ",\"" + std::to_string(i) + "\":1";
  EXPECT_EQ(Json::parse(text + "}").size(), 300'001u);
}

TEST(JsonValue, depth_has_a_limit) {
  const std::string open(Json::kDeepest, '['), close(Json::kDeepest, ']');
  EXPECT_TRUE(Json::parse(open + close).is_array());
  EXPECT_FALSE(Json::parse_if_valid("[" + open + close + "]"));
}

TEST(JsonValue, numbers_that_a_type_cannot_hold_are_refused) {
  EXPECT_EQ(Json(255).get<std::uint8_t>(), 255);
  EXPECT_THROW(Json(256).get<std::uint8_t>(), JsonError);
  EXPECT_THROW(Json(-1).get<std::size_t>(), JsonError);
  EXPECT_THROW(Json(1e300).get<int>(), JsonError);
  EXPECT_THROW(Json(std::nan("")).get<std::int64_t>(), JsonError);
  EXPECT_THROW(Json(0x1p63).get<std::int64_t>(), JsonError);
  EXPECT_EQ(Json(0x1p63).get<std::uint64_t>(), std::uint64_t{1} << 63);
  EXPECT_THROW(Json(std::numeric_limits<std::uint64_t>::max()).get<std::int64_t>(), JsonError);
  EXPECT_EQ(Json(3.9).get<int>(), 3);
  EXPECT_EQ(Json(true).get<double>(), 1);
  EXPECT_THROW(Json("1").get<double>(), JsonError);
  EXPECT_THROW(Json(1).get<std::string>(), JsonError);
  EXPECT_THROW(Json(1).get<bool>(), JsonError);
}

TEST(JsonValue, numbers_are_equal_by_value) {
  EXPECT_EQ(Json(1), Json(1u));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(-1), Json(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_LT(Json(-1), Json(0u));
  EXPECT_GT(Json(0u), Json(-1));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json(), Json(0));
  EXPECT_EQ(Json("a"), "a");
}

TEST(JsonValue, has_an_order_that_sets_can_use) {
  const std::set<Json> all = {{"a", 1}, {"a", 2},       {"a", 1},       nullptr,       true,
                              3,        Json{{"x", 1}}, Json{{"x", 2}}, Json{{"x", 1}}};
  EXPECT_EQ(all.size(), 7u);
  EXPECT_LT(Json(nullptr), Json(0));
}

TEST(JsonValue, braces_make_objects_of_pairs_and_arrays_of_anything_else) {
  const Json json = {{"name", "n"}, {"list", {1, 2.5, nullptr}}, {"none", Json::object()}, {"nested", {{"x", true}}}};
  EXPECT_EQ(json.dump(), R"({"name":"n","list":[1,2.5,null],"none":{},"nested":{"x":true}})");
  EXPECT_EQ(Json({1, 2}).dump(), "[1,2]");
  EXPECT_EQ(Json::array({{"a", 1}}).dump(), R"([["a",1]])");
  EXPECT_EQ(Json(std::map<std::string, int>{{"b", 1}, {"a", 2}}).dump(), R"({"a":2,"b":1})");
  EXPECT_EQ(Json(std::vector<bool>{true, false}).dump(), "[true,false]");
  EXPECT_EQ(Json(std::set<std::string>{"x"}).dump(), R"(["x"])");
}

TEST(JsonValue, what_is_missing_is_null_or_an_error_but_never_undefined) {
  const Json json = {{"list", {1}}};
  EXPECT_TRUE(json["absent"].is_null());
  EXPECT_THROW(json.at("absent"), JsonError);
  EXPECT_THROW(json["list"][1], JsonError);
  EXPECT_THROW(json["list"]["name"], JsonError);
  EXPECT_THROW(Json(1)["name"], JsonError);
  EXPECT_THROW(Json().back(), JsonError);
  EXPECT_EQ(json.value("absent", 7), 7);
  EXPECT_EQ(json.find("absent"), json.end());
  EXPECT_EQ(Json(3).items().size(), 0u);
}

TEST(JsonValue, changes) {
  Json json;
  json["a"]["b"].push_back(1);
  json["c"][2] = "x";
  EXPECT_EQ(json.dump(), R"({"a":{"b":[1]},"c":[null,null,"x"]})");
  json.update({{"a", 5}, {"d", 6}});
  EXPECT_EQ(json.erase("c"), 1u);
  EXPECT_EQ(json.erase("c"), 0u);
  EXPECT_EQ(json.dump(), R"({"a":5,"d":6})");
  json.erase(json.begin());
  json["self"] = json;
  EXPECT_EQ(json.dump(), R"({"d":6,"self":{"d":6}})");
  json = json["self"];
  EXPECT_EQ(json.dump(), R"({"d":6})");
  const Json moved = std::move(json);
  EXPECT_EQ(moved["d"], 6);
}

}  // namespace
}  // namespace weir
